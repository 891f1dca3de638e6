# What is installed: the command, one library of all folders' objects with the headers of
# include/attend, and files by which CMake and pkg-config find them.
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

add_library(attend STATIC ${objects})
add_library(attend::attend ALIAS attend)
set_target_properties(attend PROPERTIES LINKER_LANGUAGE CXX)
target_compile_features(attend INTERFACE cxx_std_20)
target_include_directories(attend INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                            $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(attend INTERFACE ${dependencies})

set(cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/attend)
install(TARGETS attend EXPORT attendTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT attendTargets NAMESPACE attend:: DESTINATION ${cmake_dir})
# The public interface and what it includes; tests/cmake/install_test.sh compiles against it alone.
set(public_headers
    base/error.h base/version.h data/corpus_progress.h data/subword_model.h metrics/bleu.h
    metrics/chrf.h metrics/score.h metrics/ter.h metrics/tokenizers.h models/config.h models/precision.h
    search/alternative.h search/options.h search/pair_scorer.h search/translator.h train/options.h train/progress.h train/trainer.h)
install(FILES include/attend/attend.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attend)
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
# attend.pc finds its prefix from where it lies, so that the installed folder can be moved.
file(RELATIVE_PATH up_to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/attend.pc.in attend.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/attend.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
