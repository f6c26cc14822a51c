// What a vector takes of memory.
#pragma once

#include <cstddef>
#include <vector>

namespace backbind {

template <class T>
size_t bytes_of(const std::vector<T>& values) {
  return values.capacity() * sizeof(T);
}

}  // namespace backbind
