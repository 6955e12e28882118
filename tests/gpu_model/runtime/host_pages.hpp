// Page-locked host memory: mapped twice, so that the program can be kept from pages that a queued copy will write while
// the model writes them. The program's accesses to them are reported from the handler of SIGSEGV, and let through.
#pragma once

#include <string>

#include "tests/gpu_model/memory/address_space.hpp"
#include "tests/gpu_model/memory/work.hpp"

namespace gpu_model {

// Whole pages of their own, with 0xff in all bytes. 0: the system has no more.
Address map_host_pages(std::size_t bytes);
void unmap_host_pages(Address a);

// Where the model itself reads and writes host or device memory that the program calls `a`.
char* own_view(Address a);

// The program may not touch these bytes until the host has waited for `place`; `what` names the copy.
void keep_from_host(Address a, std::size_t bytes, const Place& place, std::string what);
bool kept_from_host(Address a, std::size_t bytes);  // any of these bytes
// To be called whenever the host has waited for something.
void open_host_pages();

// Makes the model's handler of SIGSEGV the first one.
void watch_faults();

}  // namespace gpu_model
