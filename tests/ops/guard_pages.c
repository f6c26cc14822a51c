/* Memory of tensors between pages that cannot be touched: a kernel that reads or writes past its tensor ends the
 * process. To be preloaded; backbind_guard_pages() switches it on and off.
 *
 * torch takes the memory of tensors from posix_memalign and gives it back with free. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

enum { kPage = 4096, kAlignment = 16, kSlots = 1 << 18 };

static struct {
  uintptr_t address; /* 0: never used, 1: given back */
  void* mapping;
  size_t length;
} slots[kSlots];
static size_t used;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int mode; /* 0: off, 1: a page behind the memory, 2: a page before it */

void backbind_guard_pages(int value) { mode = value; }

static size_t slot_of(uintptr_t address) { return (address >> 4) * 0x9E3779B97F4A7C15u >> 46; }

int posix_memalign(void** result, size_t alignment, size_t size) {
  static int (*next)(void**, size_t, size_t);
  if (next == NULL) next = (int (*)(void**, size_t, size_t))dlsym(RTLD_NEXT, "posix_memalign");
  if (mode == 0 || size == 0) return next(result, alignment, size);
  const size_t rounded = (size + kPage - 1) / kPage * kPage;
  if (rounded < size) return ENOMEM;
  const size_t length = rounded + kPage;
  char* mapping = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return ENOMEM;
  char* memory = mapping + kPage;
  if (mode == 1) memory = mapping + (rounded - size) / kAlignment * kAlignment;
  mprotect(mode == 1 ? mapping + rounded : mapping, kPage, PROT_NONE);
  pthread_mutex_lock(&mutex);
  const int full = used > kSlots / 2;
  if (!full) {
    size_t at = slot_of((uintptr_t)memory);
    while (slots[at].address > 1) at = (at + 1) % kSlots;
    used += slots[at].address == 0;
    slots[at].address = (uintptr_t)memory;
    slots[at].mapping = mapping;
    slots[at].length = length;
  }
  pthread_mutex_unlock(&mutex);
  if (full) {
    munmap(mapping, length);
    return next(result, alignment, size);
  }
  *result = memory;
  return 0;
}

void free(void* memory) {
  static void (*next)(void*);
  if (next == NULL) next = (void (*)(void*))dlsym(RTLD_NEXT, "free");
  if (used != 0 && memory != NULL) {
    pthread_mutex_lock(&mutex);
    size_t at = slot_of((uintptr_t)memory);
    while (slots[at].address != 0 && slots[at].address != (uintptr_t)memory) at = (at + 1) % kSlots;
    if (slots[at].address != 0) {
      slots[at].address = 1;
      void* mapping = slots[at].mapping;
      const size_t length = slots[at].length;
      pthread_mutex_unlock(&mutex);
      munmap(mapping, length);
      return;
    }
    pthread_mutex_unlock(&mutex);
  }
  next(memory);
}
