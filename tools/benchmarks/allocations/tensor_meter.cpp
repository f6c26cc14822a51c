// Counts the memory of tensors: an allocator in the place of torch's CPU allocator, which knows how much it gave.
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/custom_class.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace allocations {

namespace {

struct Counters {
  std::atomic<int64_t> held = 0;
  std::atomic<int64_t> peak = 0;
  std::atomic<int64_t> count = 0;

  void took(int64_t bytes) {
    count += 1;
    const int64_t now = held += bytes;
    int64_t highest = peak;
    while (now > highest && !peak.compare_exchange_weak(highest, now)) {
    }
  }
  void gave_back(int64_t bytes) { held -= bytes; }
};

// Tensors may outlive everything else.
Counters& counters() {
  static auto& kept = *std::make_unique<Counters>().release();
  return kept;
}

// In front of each tensor's memory stands its size; what torch aligns by stays aligned.
constexpr size_t kHeader = c10::gAlignment;

void give_back(void* data) {
  if (data == nullptr) return;
  char* const begin = static_cast<char*>(data) - kHeader;
  counters().gave_back(static_cast<int64_t>(*reinterpret_cast<size_t*>(begin)));
  c10::free_cpu(begin);
}

class CountingAllocator : public c10::Allocator {
 public:
  at::DataPtr allocate(size_t bytes) override {
    // Of nothing, torch's allocator gives nothing.
    if (bytes == 0) return {nullptr, nullptr, &c10::detail::deleteNothing, at::Device(at::kCPU)};
    char* const begin = static_cast<char*>(c10::alloc_cpu(bytes + kHeader));
    *reinterpret_cast<size_t*>(begin) = bytes;
    counters().took(static_cast<int64_t>(bytes));
    return {begin + kHeader, begin + kHeader, &give_back, at::Device(at::kCPU)};
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

  void start() {
    counters().peak = start_ = counters().held;
    counters().count = 0;
  }
  int64_t peak() const { return counters().peak - start_; }
  int64_t held() const { return counters().held - start_; }
  int64_t count() const { return counters().count; }

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
