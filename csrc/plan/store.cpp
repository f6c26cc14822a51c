#include "plan/store.h"

#include <c10/util/hash.h>

#include <algorithm>
#include <typeinfo>
#include <utility>
#include <vector>

#include "plan/fingerprint.h"

namespace backbind {

namespace {

// How many plans under one key are tried in turn. A program mostly alternates between few graphs, whose plans differ
// after a few steps.
constexpr size_t kTried = 4;

// The part of a plan's steps, as its divisor, after which no other is tried without asking for the fingerprint.
constexpr size_t kPartWorthTrying = 8;

// Whether a graph that departs from a plan at some step is that of the same program, a little changed, rather than that
// of another one: at least the first half of the plan fits.
bool is_near(const Mismatch& mismatch, const Plan& plan) { return 2 * size_t{mismatch.step} >= plan.steps.size(); }

}  // namespace

PlanStore::Key::Key(const Request& request)
    : roots(request.roots().size()),
      inputs(request.inputs.size()),
      input_grads(request.input_grads),
      // Of the node that the engine made for this backward, not of the roots, which other threads may be asking too:
      // a node that is asked notes that down.
      depth(request.graph_root->topological_nr()) {
  for (const auto& root : request.roots()) {
    if (!root.is_valid()) continue;
    const std::type_info* root_type = &typeid(*root.function);
    if (type == nullptr) {
      type = root_type;
    } else {
      others = c10::hash_combine(others, c10::get_hash(root_type));
    }
  }
}

bool PlanStore::Key::differs_in_depth(const Key& other) const {
  if (depth == other.depth) return false;
  Key same = *this;
  same.depth = other.depth;
  return same == other;
}

std::vector<PlanPtr> PlanStore::used_last(const Key& key) const {
  const std::lock_guard lock(mutex_);
  std::vector<PlanPtr> plans;
  for (const Kept& one : kept_) {
    if (one.key != key) continue;
    plans.push_back(one.plan);
    if (plans.size() == kTried) break;
  }
  return plans;
}

PlanPtr PlanStore::with_fingerprint(const Key& key, uint64_t fingerprint) const {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::ranges::find_if(kept_, [&](const Kept& one) { return one.fingerprint == fingerprint && one.key == key; });
  return found == kept_.end() ? nullptr : found->plan;
}

PlanPtr PlanStore::of_another_depth(const Key& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(kept_, [&](const Kept& one) { return one.key.differs_in_depth(key); });
  return found == kept_.end() ? nullptr : found->plan;
}

ExecutablePtr PlanStore::Kept::made_by(const BackendPtr& backend) const {
  for (const auto& [maker, executable] : executables) {
    if (maker.lock() == backend) return executable;
  }
  return nullptr;
}

void PlanStore::Kept::add(const BackendPtr& backend, ExecutablePtr executable, std::vector<ExecutablePtr>& dropped) {
  std::erase_if(executables, [&](auto& made) {
    if (!made.first.expired()) return false;
    dropped.push_back(std::move(made.second));
    return true;
  });
  if (made_by(backend) == nullptr) executables.emplace_back(backend, std::move(executable));
}

ExecutablePtr PlanStore::use(const PlanPtr& plan, const BackendPtr& backend) {
  std::shared_ptr<const Lowering> lowering;
  {
    const std::lock_guard lock(mutex_);
    const auto used = std::ranges::find(kept_, plan, &Kept::plan);
    if (used != kept_.end()) {
      std::rotate(kept_.begin(), used, used + 1);
      if (ExecutablePtr made = kept_.front().made_by(backend)) return made;
      lowering = kept_.front().lowering;
    }
  }
  // Without the lock: another thread may have evicted the plan, or may be preparing it, too.
  if (lowering == nullptr) lowering = std::make_shared<const Lowering>(*plan);
  ExecutablePtr executable = backend->prepare(plan, std::move(lowering));
  std::vector<ExecutablePtr> dropped;  // what a backend made may hold objects of Python, so it goes without the lock
  const std::lock_guard lock(mutex_);
  const auto kept = std::ranges::find(kept_, plan, &Kept::plan);
  if (kept != kept_.end()) kept->add(backend, executable, dropped);
  return executable;
}

// Matching looks at nothing but the live graph and plans that never change, so other threads may go on meanwhile.
LookUp PlanStore::find(const Request& request, const BackendPtr& backend) {
  const Key key(request);
  LookUp found;
  Matcher matcher;
  const auto fits = [&](const PlanPtr& plan, Mismatch& mismatch) {
    if (matcher.match(*plan, request, found.nodes, mismatch)) {
      found.plan = plan;
      found.executable = use(plan, backend);
      return true;
    }
    if (!found.difference && is_near(mismatch, *plan)) found.difference = mismatch;
    return false;
  };
  const std::vector<PlanPtr> candidates = used_last(key);
  size_t steps_in_vain = 0;
  for (const PlanPtr& candidate : candidates) {
    Mismatch mismatch;
    if (fits(candidate, mismatch)) return found;
    steps_in_vain += mismatch.step;
    if (kPartWorthTrying * steps_in_vain > candidate->steps.size()) break;
  }
  Mismatch mismatch;
  if (!candidates.empty()) {
    found.fingerprint = fingerprint(request);
    const PlanPtr likely = with_fingerprint(key, *found.fingerprint);
    if (likely != nullptr && fits(likely, mismatch)) return found;
  }
  // Mostly only to say what is different: where but a part of the graph is wanted, a plan may fit at any depth.
  if (const PlanPtr other = of_another_depth(key); !found.difference && other != nullptr) fits(other, mismatch);
  return found;
}

bool PlanStore::keep(const Request& request, const BackendPtr& backend, PlanPtr plan, LookUp& found) {
  const auto lowering = std::make_shared<const Lowering>(*plan);
  found.plan = plan;
  found.executable = backend->prepare(plan, lowering);
  const size_t bytes = plan->bytes() + lowering->bytes();
  if (bytes > most_bytes_) return false;
  Kept kept{.key = Key(request),
            .fingerprint = found.fingerprint ? *found.fingerprint : fingerprint(request),
            .plan = std::move(plan),
            .lowering = lowering,
            .executables = {{backend, found.executable}},
            .bytes = bytes};
  std::deque<Kept> evicted;  // goes without the lock, as in use()
  const std::lock_guard lock(mutex_);
  kept_.push_front(std::move(kept));
  bytes_ += bytes;
  while (kept_.size() > most_plans_ || bytes_ > most_bytes_) {
    bytes_ -= kept_.back().bytes;
    evicted.push_back(std::move(kept_.back()));
    kept_.pop_back();
  }
  return true;
}

size_t PlanStore::size() const {
  const std::lock_guard lock(mutex_);
  return kept_.size();
}

size_t PlanStore::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void PlanStore::clear() {
  std::deque<Kept> evicted;  // goes without the lock, as in use()
  const std::lock_guard lock(mutex_);
  kept_.swap(evicted);
  bytes_ = 0;
}

}  // namespace backbind
