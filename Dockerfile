# vfio-agent as an image: docker build -t vfio-agent:0.1.0 .
FROM debian:12 AS build
WORKDIR /source
# The packages first: they change less often than the sources.
COPY packaging/install-dependencies.sh packaging/debian-packages packaging/
RUN packaging/install-dependencies.sh --build --simulate
COPY . .
# The tests that need neither FUSE nor a kernel of their own; test/run.sh runs them all.
RUN cmake --preset release \
 && cmake --build --preset release --parallel "$(nproc)" \
      --target vfio-agent sysfs_test iommu_test deviceplugin_test sim_test \
 && ctest --test-dir build/release --output-on-failure --parallel 2 --no-tests=error \
      -R '^(layering$|(sysfs|iommu|deviceplugin|sim)_test: )' \
 && cmake --install build/release --prefix /usr/local --strip

FROM debian:12-slim
COPY packaging/install-dependencies.sh packaging/debian-packages /tmp/packaging/
RUN /tmp/packaging/install-dependencies.sh --run \
 && rm -rf /tmp/packaging /var/lib/apt/lists/*
COPY --from=build /usr/local/bin/vfio-agent /usr/local/bin/vfio-agent
COPY LICENSE /usr/share/doc/vfio-agent/copyright
ENTRYPOINT ["/usr/local/bin/vfio-agent"]
CMD ["run"]
