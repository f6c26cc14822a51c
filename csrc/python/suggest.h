// "did you mean" for names that are nearly right.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace backbind::python {

// The known name that somebody probably meant who wrote another one, if there is one. The rule is that of
// codegen/parse/nearest.py, where it is described; a test holds the two against each other.
std::optional<std::string_view> nearest_name(std::string_view written, const std::vector<std::string_view>& known);

// ", did you mean 'self'?", or nothing.
std::string did_you_mean(std::string_view written, const std::vector<std::string_view>& known);

}  // namespace backbind::python
