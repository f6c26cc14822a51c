// The modes of a thread: what decides, beside its arguments, what an operator does and who gets to see it.
#pragma once

#include <ATen/PythonTorchFunctionTLS.h>
#include <c10/core/ScalarType.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstddef>
#include <cstdint>

namespace backbind {

// Whether something in this thread wants to see calls of operators: a mode, a transform, a tracer, a profiler.
bool has_active_modes();

// A picture of the modes, to see whether foreign code has left them as they were. Stacks of modes are told by their
// heights. What Python code keeps in a thread for itself is not part of it.
struct ThreadModes {
  ThreadModes();
  bool operator==(const ThreadModes&) const = default;

  c10::DispatchKeySet included;
  c10::DispatchKeySet excluded;
  bool grad_mode;
  bool inference_mode;
  bool forward_grad_mode;
  bool multithreading;
  bool view_replay;
  bool grad_layout_enforcement;
  bool record_function;
  bool skips_next_torch_function;
  at::impl::TorchFunctionDisabledState torch_function;
  int64_t torch_function_modes;
  int64_t dispatch_modes;
  size_t saved_tensor_hooks;
  bool saved_tensor_hooks_disabled;
  bool saved_tensor_hooks_deferred;
  at::ScalarType autocast_dtype;
  const void* debug_info;
};

}  // namespace backbind
