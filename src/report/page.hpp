// The report of a run: one HTML page, from the files that the run has written.
#pragma once

#include <cstddef>
#include <string>

namespace maki::report {

inline constexpr const char* kReportName = "report.html";

struct Page {
  std::string html;
  std::size_t picture_bytes = 0;  // of the html
};

// The page of the run in a directory, whether it has ended, was stopped, goes on or was resumed. The page lists missing
// and damaged files. Throws Error where the directory holds no run (metrics.jsonl).
Page report_page(const std::string& directory);

// Writes report.html in the directory, replacing an older one. Returns "DIRECTORY/report.html (712 kB)". Throws Error
// as above, and where the file cannot be written.
std::string write_report(const std::string& directory);

}  // namespace maki::report
