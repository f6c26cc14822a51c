// What keeps a functional operator pure: surroundings that would change its result are switched off while it runs.
#pragma once

#include <ATen/core/ivalue.h>

#include "nodes/binding.h"

namespace backbind {

// Runs a functional backward with autocast off. Grad mode stays as it is: it decides whether the result has a graph.
variable_list run_pure(Binding::Apply apply, const variable_list& grads, const ivalue_list& arguments);

}  // namespace backbind
