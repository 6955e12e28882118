// Boost's reader of JSON.
#pragma once

// Version 1.74 warns without it.
#define BOOST_BIND_GLOBAL_PLACEHOLDERS
#include <boost/property_tree/json_parser.hpp>
#include <boost/property_tree/ptree.hpp>
