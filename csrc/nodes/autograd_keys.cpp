#include "nodes/autograd_keys.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/forward_grad.h>

#include "thread_modes.h"

namespace backbind {

// Whatever changes this during a backward is foreign code, behind which it is undone.
bool can_skip_autograd_keys() {
  const auto excluded = c10::impl::tls_local_dispatch_key_set().excluded_;
  return !at::GradMode::is_enabled() && !has_active_modes() && (excluded - c10::default_excluded_set).empty() &&
         torch::autograd::ForwardADLevel::try_get_by_idx(0) == nullptr;
}

}  // namespace backbind
