// The part of torch_private.h that says which node is being evaluated.
//
// torch keeps that node in a thread-local variable that only its own NodeGuard can set. The variable is found once: a
// node that the engine evaluates looks through the thread-local memory of torch's library for the pointer to itself,
// and checks what it finds by putting another node there and asking torch for the current node. Its offset in that
// memory is the same in every thread.
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/engine.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "torch_private.h"

#if __has_include(<link.h>)
#include <link.h>
#endif

namespace backbind::torch_private {

using torch::autograd::Node;

namespace {

using NodePtr = decltype(torch::autograd::get_current_node());

// This thread's copy of the thread-local variables of the library that has get_current_node; empty where the platform
// does not tell.
std::span<std::byte> thread_local_memory() {
#if !__has_include(<link.h>)
  return {};
#else
  struct Search {
    uintptr_t function;
    std::span<std::byte> memory;
  };
  Search search{reinterpret_cast<uintptr_t>(&torch::autograd::get_current_node), {}};
  const auto visit = [](dl_phdr_info* library, size_t size, void* context) {
    auto& found = *static_cast<Search*>(context);
    if (size < offsetof(dl_phdr_info, dlpi_tls_data) + sizeof(library->dlpi_tls_data)) return 1;
    bool has_function = false;
    size_t memory_size = 0;
    for (size_t i = 0; i < library->dlpi_phnum; ++i) {
      const auto& segment = library->dlpi_phdr[i];
      const uintptr_t begin = library->dlpi_addr + segment.p_vaddr;
      if (segment.p_type == PT_LOAD)
        has_function |= found.function >= begin && found.function - begin < segment.p_memsz;
      if (segment.p_type == PT_TLS) memory_size = segment.p_memsz;
    }
    if (!has_function) return 0;
    if (library->dlpi_tls_data != nullptr)
      found.memory = {static_cast<std::byte*>(library->dlpi_tls_data), memory_size};
    return 1;
  };
  torch::autograd::get_current_node();  // the memory is there once the thread has used one of the variables
  dl_iterate_phdr(visit, &search);
  return search.memory;
#endif
}

NodePtr& node_at(std::span<std::byte> memory, size_t offset) {
  return *reinterpret_cast<NodePtr*>(memory.data() + offset);
}

// A node that the engine evaluates in order to find where it keeps the node that it evaluates.
struct Probe final : Node {
  explicit Probe(const at::Tensor& input) : Node(/*sequence_nr=*/uint64_t{0}) { add_input_metadata(input); }

  torch::autograd::variable_list apply(torch::autograd::variable_list&& inputs) override {
    const auto memory = thread_local_memory();
    const NodePtr self = getptr();
    for (size_t at = 0; at + sizeof(NodePtr) <= memory.size(); at += alignof(NodePtr)) {
      if (*reinterpret_cast<Node* const*>(memory.data() + at) == self.get() &&
          is_current_node(node_at(memory, at), inputs[0])) {
        offset = at;
        break;
      }
    }
    return {};
  }

  static bool is_current_node(NodePtr& candidate, const at::Tensor& input) {
    NodePtr other = c10::make_intrusive<Probe>(input);
    const Node* expected = other.get();
    std::swap(candidate, other);
    const bool is = torch::autograd::get_current_node().get() == expected;
    std::swap(candidate, other);
    return is;
  }

  std::optional<size_t> offset;
};

// In a thread of its own, in which no mode is on and no backward runs.
std::optional<size_t> find_offset() {
  static_assert(sizeof(NodePtr) == sizeof(Node*), "an owning pointer to a node is the pointer alone");
  std::optional<size_t> offset;
  std::thread([&] {
    try {
      const at::Tensor gradient = at::zeros({});
      const auto probe = c10::make_intrusive<Probe>(gradient);
      torch::autograd::Engine::get_default_engine().execute({torch::autograd::Edge(probe, 0)}, {gradient},
                                                            /*keep_graph=*/false, /*create_graph=*/false,
                                                            /*accumulate_grad=*/true);
      offset = probe->offset;
    } catch (const std::exception&) {
      // Then nothing is known, and the current node stays what it is.
    }
  }).join();
  return offset;
}

constexpr size_t kNotFound = SIZE_MAX;

// Written once, before any backward is captured.
std::atomic<size_t> current_node_offset{kNotFound};

NodePtr* locate_current_node() {
  const size_t offset = current_node_offset.load(std::memory_order_acquire);
  if (offset == kNotFound) return nullptr;
  const auto memory = thread_local_memory();
  return memory.empty() ? nullptr : &node_at(memory, offset);
}

}  // namespace

bool find_current_node() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (const auto offset = find_offset()) current_node_offset.store(*offset, std::memory_order_release);
  });
  return current_node_offset.load(std::memory_order_acquire) != kNotFound;
}

CurrentNodeGuard::CurrentNodeGuard(Node& node) {
  // Asking the loader takes microseconds, so each thread asks once.
  thread_local NodePtr* const current = locate_current_node();
  current_ = current;
  if (current_ != nullptr) last_evaluating_node_ = std::exchange(*current_, node.getptr());
}

CurrentNodeGuard::~CurrentNodeGuard() {
  if (current_ != nullptr) *current_ = std::move(last_evaluating_node_);
}

}  // namespace backbind::torch_private
