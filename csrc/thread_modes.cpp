#include "thread_modes.h"

#include <ATen/SavedTensorHooks.h>
#include <ATen/autocast_mode.h>
#include <ATen/record_function.h>
#include <c10/core/AutogradState.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <c10/util/ThreadLocalDebugInfo.h>

namespace backbind {

bool has_active_modes() {
  const auto included = c10::impl::tls_local_dispatch_key_set().included_;
  return !(included - c10::default_included_set).empty() || c10::impl::dispatch_mode_enabled() ||
         at::impl::torch_function_mode_enabled() || at::hasCallbacks();
}

ThreadModes::ThreadModes() {
  const auto keys = c10::impl::tls_local_dispatch_key_set();
  included = keys.included_;
  excluded = keys.excluded_;
  const auto& autograd = c10::AutogradState::get_tls_state();
  grad_mode = autograd.get_grad_mode();
  inference_mode = autograd.get_inference_mode();
  forward_grad_mode = autograd.get_fw_grad_mode();
  multithreading = autograd.get_multithreading_enabled();
  view_replay = autograd.get_view_replay_enabled();
  grad_layout_enforcement = autograd.get_grad_layout_enforcement_enabled();
  record_function = at::isRecordFunctionEnabled();
  using TorchFunction = at::impl::PythonTorchFunctionTLS;
  skips_next_torch_function = TorchFunction::peek_skip_next();
  torch_function = TorchFunction::get_disabled_state();
  torch_function_modes = TorchFunction::stack_len();
  dispatch_modes = c10::impl::TorchDispatchModeTLS::stack_len();
  const auto& hooks = at::SavedTensorDefaultHooks::get_tls_state();
  saved_tensor_hooks = hooks.stack.size();
  saved_tensor_hooks_disabled = hooks.disabled_error_message.has_value();
  saved_tensor_hooks_deferred = hooks.is_tracing;
  autocast_dtype = at::autocast::get_autocast_dtype(at::kCPU);
  debug_info = c10::ThreadLocalDebugInfo::current().get();
}

}  // namespace backbind
