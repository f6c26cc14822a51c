#include "capture/devices.h"

#include <ATen/DeviceAccelerator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>

namespace backbind {

using torch::autograd::Node;

namespace {

// Whether the engine runs nodes of this device in the calling thread.
bool is_run_by_caller(c10::DeviceType type) { return type == c10::kCPU || type == c10::kMeta; }

// Whether the process has a device whose nodes the engine runs elsewhere, besides the accelerator.
bool has_further_devices() {
  const auto accelerator = at::getAccelerator();
  for (int i = 0; i < c10::COMPILE_TIME_MAX_DEVICE_TYPES; ++i) {
    const auto type = static_cast<c10::DeviceType>(i);
    if (is_run_by_caller(type) || accelerator == type || !c10::impl::hasDeviceGuardImpl(type)) continue;
    // The lazy device is always known, and has devices once somebody has started its backend.
    if (c10::impl::getDeviceGuardImpl(type)->deviceCount() > 0) return true;
  }
  return false;
}

bool is_run_elsewhere(const Node* node) {
  for (uint32_t i = 0; i < node->num_inputs(); ++i) {
    const auto& metadata = node->input_metadata(i);
    if (!metadata.was_default_constructed() && !is_run_by_caller(metadata.device().type())) return true;
  }
  return false;
}

}  // namespace

bool has_other_devices() { return at::getAccelerator().has_value() || has_further_devices(); }

bool touches_accelerator(const Request& request) {
  // The engine asks every node that it reaches for its stream, and notes the caller's streams down where one has any.
  if (!request.task.caller_current_streams_.empty()) return true;
  if (!has_further_devices()) return false;
  const auto is_root_run_elsewhere = [](const torch::autograd::Edge& root) {
    return root.is_valid() && is_run_elsewhere(root.function.get());
  };
  return std::ranges::any_of(request.roots(), is_root_run_elsewhere) ||
         std::ranges::any_of(request.task.nodes_in_graph_, is_run_elsewhere);
}

}  // namespace backbind
