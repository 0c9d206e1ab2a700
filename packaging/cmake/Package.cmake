# What is installed, and the Debian package that CPack makes of it:
#   cmake --install BUILD --component runtime --strip --prefix DIR     the program and its papers
#   cpack --config BUILD/CPackConfig.cmake -B OUT                      vfio-agent_VERSION_ARCH.deb
# With SOURCE_DATE_EPOCH in the environment the same sources give the same package.
include(GNUInstallDirs)
set(docs "${CMAKE_INSTALL_DATAROOTDIR}/doc/vfio-agent")
set(papers "${PROJECT_BINARY_DIR}/packaging")

install(TARGETS vfio-agent RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
install(FILES packaging/OPERATING.md packaging/config.example.yaml
  DESTINATION "${docs}" COMPONENT runtime)
install(FILES LICENSE DESTINATION "${docs}" COMPONENT runtime RENAME copyright)
install(FILES packaging/systemd/vfio-agent.service
  DESTINATION lib/systemd/system COMPONENT runtime)

# Written when they are installed: the bill of materials, the compressed man page, and the shells'
# completions, of the program that is installed.
configure_file(packaging/cmake/papers.cmake.in "${papers}/papers.cmake" @ONLY)
configure_file(packaging/cmake/package_version.cmake.in "${papers}/version.cmake" @ONLY)
install(SCRIPT "${papers}/papers.cmake" COMPONENT runtime)
install(DIRECTORY "${papers}/share/" DESTINATION ${CMAKE_INSTALL_DATAROOTDIR} COMPONENT runtime)

install(FILES packaging/debian/config.yaml DESTINATION /etc/vfio-agent COMPONENT debian)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME vfio-agent)
set(CPACK_PACKAGE_VENDOR "vfio-agent")
set(CPACK_PACKAGE_CONTACT "the vfio-agent developers <root@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "gives whole PCI devices of a node to virtual machines")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "vfio-agent binds whole IOMMU groups to vfio-pci, says why it cannot where it cannot,
 and serves them to a kubelet as a device plugin, for KubeVirt. It works without Kubernetes as well.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime debian)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
# The linked libraries by dpkg-shlibdeps; what the program opens by name it cannot see. Without
# libcivetweb1 there is no HTTP, without libkmod2 no module is loaded, without libcurl4 the API server
# is not asked, and the program says so.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "pci.ids")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libcivetweb1, libcurl4, libkmod2")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  "${PROJECT_SOURCE_DIR}/packaging/debian/conffiles" "${PROJECT_SOURCE_DIR}/packaging/debian/postinst"
  "${PROJECT_SOURCE_DIR}/packaging/debian/prerm" "${PROJECT_SOURCE_DIR}/packaging/debian/postrm")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# The version is looked up when the package is made, like the program's.
set(CPACK_PROJECT_CONFIG_FILE "${papers}/version.cmake")
include(CPack)
