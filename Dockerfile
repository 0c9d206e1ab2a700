# vfio-agent as an image:
#   docker build -t REGISTRY/vfio-agent:0.1.0 \
#     --build-arg VERSION="$(git describe --tags --match 'v[0-9]*' --always --abbrev=12 --dirty=.dirty)" \
#     --build-arg SOURCE_DATE_EPOCH="$(git log -1 --format=%ct)" .
FROM debian:12 AS build
WORKDIR /source
# The packages first: they change less often than the sources.
COPY packaging/install-dependencies.sh packaging/debian-packages packaging/
RUN packaging/install-dependencies.sh --build --simulate --run --package
COPY . .
# What `version` says, or `git describe`: the repository itself does not come along. And the time of all files.
ARG VERSION=
ARG SOURCE_DATE_EPOCH=0
# The tests that need neither FUSE nor a kernel of their own; test/run.sh runs them all.
RUN cmake --preset release -DVFIO_AGENT_VERSION="${VERSION}" \
 && cmake --build --preset release --parallel "$(nproc)" \
      --target vfio-agent sysfs_test iommu_test deviceplugin_test sim_test \
 && ctest --test-dir build/release --output-on-failure --parallel 2 --no-tests=error \
      -R '^(layering$|(sysfs|iommu|deviceplugin|sim)_test: )' \
 && cmake --install build/release --component runtime --strip --prefix /installed \
 && packaging/image/rootfs.sh /installed /image

# No shell, no package manager: what rootfs.sh says, and nothing else. uid 0, since the kernel takes
# writes to driver_override from nobody else; all else is the pod's securityContext.
FROM scratch
COPY --from=build /image/ /
LABEL org.opencontainers.image.title="vfio-agent" \
      org.opencontainers.image.description="Gives whole PCI devices of a node to virtual machines" \
      org.opencontainers.image.licenses="Apache-2.0"
EXPOSE 9431
ENTRYPOINT ["/usr/bin/vfio-agent"]
CMD ["run"]
