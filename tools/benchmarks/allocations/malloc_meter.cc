// Counts all that malloc gives to a process. Loaded before the C library (LD_PRELOAD), so that its functions are called
// in the place of glibc's, which do the work.
#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

extern "C" {

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);

}  // extern "C"

namespace {

std::atomic<int64_t> held, peak, count, start;

void* took(void* memory) {
  if (memory == nullptr) return nullptr;
  count.fetch_add(1, std::memory_order_relaxed);
  const auto bytes = static_cast<int64_t>(malloc_usable_size(memory));
  const int64_t now = held.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  int64_t highest = peak.load(std::memory_order_relaxed);
  while (now > highest && !peak.compare_exchange_weak(highest, now, std::memory_order_relaxed)) {
  }
  return memory;
}

void gives_back(void* memory) {
  if (memory != nullptr) held.fetch_sub(static_cast<int64_t>(malloc_usable_size(memory)), std::memory_order_relaxed);
}

}  // namespace

extern "C" {

void* malloc(size_t bytes) { return took(__libc_malloc(bytes)); }

void* calloc(size_t items, size_t bytes) { return took(__libc_calloc(items, bytes)); }

void* realloc(void* memory, size_t bytes) {
  gives_back(memory);
  void* const moved = __libc_realloc(memory, bytes);
  // Where there is no memory, the old piece stays as it was; that is no case worth counting.
  return took(moved);
}

void* memalign(size_t alignment, size_t bytes) { return took(__libc_memalign(alignment, bytes)); }

void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  void* const made = memalign(alignment, bytes);
  if (made == nullptr) return ENOMEM;
  *memory = made;
  return 0;
}

void free(void* memory) {
  gives_back(memory);
  __libc_free(memory);
}

void backbind_malloc_start() {
  start = held.load();
  peak = held.load();
  count = 0;
}

int64_t backbind_malloc_peak() { return peak - start; }

int64_t backbind_malloc_count() { return count; }

}  // extern "C"
