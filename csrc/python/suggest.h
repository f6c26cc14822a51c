// "did you mean" for names that are nearly right.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace backbind::python {

// ", did you mean 'self'?" for the nearest known name, or the list of all of them where none is near.
std::string suggestion(std::string_view given, const std::vector<std::string_view>& known);

}  // namespace backbind::python
