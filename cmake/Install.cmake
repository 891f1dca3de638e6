# What is installed: the command; for C++ one library of all folders' objects with the headers of
# include/attend; for C a shared library; and files by which CMake and pkg-config find them.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(objects "")
set(dependencies "")
foreach(folder ${ATTEND_FOLDERS})
  list(APPEND objects $<TARGET_OBJECTS:attend_${folder}>)
  get_target_property(linked attend_${folder} INTERFACE_LINK_LIBRARIES)
  list(APPEND dependencies ${linked})
endforeach()
list(FILTER dependencies EXCLUDE REGEX "^attend_")
list(REMOVE_DUPLICATES dependencies)

# Static unless BUILD_SHARED_LIBS. The interface of C++ may change with each 0.x.
add_library(attend ${objects})
add_library(attend::attend ALIAS attend)
set_target_properties(attend PROPERTIES
  LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_compile_features(attend INTERFACE cxx_std_20)
target_include_directories(attend INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                            $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(attend PUBLIC ${dependencies})

# Its ABI stays while its SOVERSION does: nothing but C's functions leaves it
# (tests/cmake/c_symbols.txt lists them).
set(ATTEND_C_SOVERSION 0)
add_library(attend_c SHARED $<TARGET_OBJECTS:attend_c_api>)
add_library(attend::attend_c ALIAS attend_c)
set(c_symbols ${PROJECT_SOURCE_DIR}/cmake/attend_c.map)
set_target_properties(attend_c PROPERTIES
  LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION ${ATTEND_C_SOVERSION}
  LINK_DEPENDS ${c_symbols})
target_include_directories(attend_c INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(attend_c PRIVATE $<BUILD_INTERFACE:attend_c_api>)
target_link_options(attend_c PRIVATE LINKER:--version-script=${c_symbols} LINKER:--as-needed)

set(cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/attend)
install(TARGETS attend EXPORT attendTargets)
install(EXPORT attendTargets NAMESPACE attend:: DESTINATION ${cmake_dir})
install(TARGETS attend_c EXPORT attend_cTargets)
install(EXPORT attend_cTargets NAMESPACE attend:: DESTINATION ${cmake_dir})
# The public interface and what it includes; tests/cmake/install_test.sh compiles against it alone.
set(public_headers
    autograd/regularization.h base/error.h base/log_level.h base/version.h data/corpus_progress.h
    data/subword_model.h data/text.h data/utf8.h metrics/bleu.h metrics/chrf.h metrics/score.h
    metrics/ter.h metrics/tokenizers.h models/config.h models/precision.h search/alternative.h
    search/options.h search/pair_scorer.h search/translator.h train/options.h train/progress.h
    train/trainer.h)
install(FILES include/attend/attend.h include/attend/c_api.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attend)
foreach(header ${public_headers})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES src/attend/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attend/${folder})
endforeach()
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(TARGET attend_cli)
  install(TARGETS attend_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET attend_mpi)
  install(TARGETS attend_mpi LIBRARY DESTINATION ${ATTEND_MODULE_DIR})
endif()

configure_package_config_file(cmake/attendConfig.cmake.in attendConfig.cmake
                              INSTALL_DESTINATION ${cmake_dir})
write_basic_package_version_file(attendConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/attendConfig.cmake
              ${PROJECT_BINARY_DIR}/attendConfigVersion.cmake DESTINATION ${cmake_dir})
# The .pc files find their prefix from where they lie, so that the installed folder can be moved.
file(RELATIVE_PATH up_to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
foreach(library attend attend_c)
  configure_file(cmake/${library}.pc.in ${library}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${library}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
