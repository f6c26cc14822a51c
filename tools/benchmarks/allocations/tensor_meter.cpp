// Counts the memory of tensors: an allocator in the place of torch's CPU allocator, which knows how much it gave.
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/custom_class.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace allocations {

namespace {

// What is counted. Sizes are kept beside the memory, not in it: torch's users of raw_allocate and raw_deallocate
// (oneDNN's tensors) ask for the allocator anew each time, so memory may be taken from one and given back to the other.
class Counters {
 public:
  void took(void* data, int64_t bytes) {
    const std::lock_guard lock(mutex_);
    sizes_[data] = bytes;
    count_ += 1;
    held_ += bytes;
    peak_ = std::max(peak_, held_);
  }

  // Nothing is counted for memory that was taken from torch's own allocator.
  void gave_back(void* data) {
    const std::lock_guard lock(mutex_);
    const auto found = sizes_.find(data);
    if (found == sizes_.end()) return;
    held_ -= found->second;
    sizes_.erase(found);
  }

  // Begins to count anew, and returns what is held.
  int64_t start() {
    const std::lock_guard lock(mutex_);
    count_ = 0;
    return peak_ = held_;
  }

  int64_t held() const {
    const std::lock_guard lock(mutex_);
    return held_;
  }
  int64_t peak() const {
    const std::lock_guard lock(mutex_);
    return peak_;
  }
  int64_t count() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<void*, int64_t> sizes_;
  int64_t held_ = 0;
  int64_t peak_ = 0;
  int64_t count_ = 0;
};

// Tensors may outlive everything else.
Counters& counters() {
  static auto& kept = *std::make_unique<Counters>().release();
  return kept;
}

void give_back(void* data) {
  if (data == nullptr) return;
  // Before it is free for others to take.
  counters().gave_back(data);
  c10::free_cpu(data);
}

class CountingAllocator : public c10::Allocator {
 public:
  at::DataPtr allocate(size_t bytes) override {
    // Of nothing, torch's allocator gives nothing.
    if (bytes == 0) return {nullptr, nullptr, &c10::detail::deleteNothing, at::Device(at::kCPU)};
    void* const data = c10::alloc_cpu(bytes);
    counters().took(data, static_cast<int64_t>(bytes));
    return {data, data, &give_back, at::Device(at::kCPU)};
  }
  at::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }
};

// Until it is stopped, tensors are counted. What was allocated meanwhile may be freed at any time later.
struct TensorMeter : torch::CustomClassHolder {
  TensorMeter() : before_(c10::GetAllocator(at::kCPU)) {
    static CountingAllocator allocator;
    TORCH_CHECK(before_ != &allocator, "there is a TensorMeter already; the memory of tensors is counted once");
    c10::SetAllocator(at::kCPU, &allocator, kPriority);
  }
  ~TensorMeter() override { stop(); }
  TensorMeter(const TensorMeter&) = delete;
  TensorMeter& operator=(const TensorMeter&) = delete;

  // torch's own allocator, which also tells profilers of what it gives, has its place again.
  void stop() {
    if (c10::Allocator* before = std::exchange(before_, nullptr)) c10::SetAllocator(at::kCPU, before, kPriority);
  }

  void start() { start_ = counters().start(); }
  int64_t peak() const { return counters().peak() - start_; }
  int64_t held() const { return counters().held() - start_; }
  int64_t count() const { return counters().count(); }

 private:
  // The highest, because torch takes a new allocator only if its priority is not below that of the one before.
  static constexpr uint8_t kPriority = 255;

  c10::Allocator* before_;
  int64_t start_ = 0;
};

}  // namespace

}  // namespace allocations

TORCH_LIBRARY(backbind_allocations, library) {
  using allocations::TensorMeter;
  using Self = c10::intrusive_ptr<TensorMeter>;
  library.class_<TensorMeter>("TensorMeter")
      .def(torch::init<>())
      .def("start", [](const Self& self) { self->start(); })
      .def("stop", [](const Self& self) { self->stop(); })
      .def("peak", [](const Self& self) { return self->peak(); })
      .def("held", [](const Self& self) { return self->held(); })
      .def("count", [](const Self& self) { return self->count(); });
}
