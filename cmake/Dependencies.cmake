# Everything comes from the distribution's packages; see scripts/install-deps.sh and the README.
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)  # oneDNN's runtime: each worker asks it for one thread
find_package(PkgConfig REQUIRED)
find_package(dnnl REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(sentencepiece REQUIRED IMPORTED_TARGET sentencepiece)
# What the report's curves are drawn with; it goes into the command, and from there into each page.
find_file(ATTEND_CHART_JS chart.min.js PATHS /usr/share/javascript/chart.js NO_DEFAULT_PATH)
if(NOT ATTEND_CHART_JS)
  message(FATAL_ERROR "chart.min.js (Chart.js 3) is not in /usr/share/javascript/chart.js: install "
                      "libjs-chart.js, or name the file with -DATTEND_CHART_JS=FILE")
endif()
pkg_check_modules(mpi IMPORTED_TARGET mpi-c)  # several machines; without it attend trains on one
pkg_check_modules(icu REQUIRED IMPORTED_TARGET icu-uc)  # Unicode's classes and case maps
