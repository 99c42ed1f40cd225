#include "tests/multi_master/reference/tree_checker.h"

#include <optional>
#include <set>

namespace dbx::mm::reference {
namespace {

class Checker {
 public:
  Checker(const ModelPages& pages, uint32_t tree) : pages_(pages), tree_(tree) {}

  CheckedTree Check(uint64_t root) {
    std::map<uint64_t, uint64_t> above = {{0, root}};  // lowest key, page
    const auto found = pages_.find(root);
    if (found == pages_.end()) {
      Problem(root, "there is no root");
      return result_;
    }
    if (found->second.right != 0) Problem(root, "the root has a right link");
    for (int level = found->second.level; level >= 0 && !above.empty(); --level) {
      const std::map<uint64_t, uint64_t> chain = Chain(above.begin()->second, level);
      for (const auto& [lowest, id] : above) {
        const auto page = chain.find(lowest);
        if (page == chain.end() || page->second != id) Problem(id, "a separator that is not its page's lowest key");
      }
      result_.unposted += chain.size() - above.size();
      above.clear();
      for (const auto& [lowest, id] : chain) {
        for (const auto& child : pages_.at(id).children) above.insert(child);
      }
    }
    return result_;
  }

 private:
  void Problem(uint64_t page, const std::string& what) {
    result_.problems.push_back("page " + std::to_string(page) + ": " + what);
  }

  // The pages of a level from its leftmost on, by their lowest keys.
  std::map<uint64_t, uint64_t> Chain(uint64_t leftmost, int level) {
    std::map<uint64_t, uint64_t> chain;
    uint64_t lowest = 0;
    for (uint64_t id = leftmost; id != 0;) {
      if (!seen_.insert(id).second) {
        Problem(id, "is reached twice");
        break;
      }
      const auto found = pages_.find(id);
      if (found == pages_.end()) {
        Problem(id, "a link to a page that is not there");
        break;
      }
      chain.emplace(lowest, id);
      ++result_.pages;
      CheckPage(id, found->second, level, lowest);
      if (found->second.right != 0 && found->second.high_key <= lowest) {
        Problem(id, "high keys do not ascend");
        break;
      }
      lowest = found->second.high_key;
      id = found->second.right;
    }
    return chain;
  }

  void CheckPage(uint64_t id, const ModelPage& page, int level, uint64_t lowest) {
    if (page.tree != tree_) Problem(id, "is another tree's");
    if (page.level != level) Problem(id, "is of another level");
    if (level == 0 && !page.children.empty()) Problem(id, "a leaf with children");
    if (level > 0 && !page.rows.empty()) Problem(id, "an inner page with rows");
    if (level > 0 && (page.children.empty() || page.children.begin()->first != lowest)) {
      Problem(id, "its first separator is not its lowest key");
    }
    CheckKeys(id, page, page.children, lowest);
    CheckKeys(id, page, page.rows, lowest);
    result_.rows.insert(page.rows.begin(), page.rows.end());
  }

  template <class Cells>
  void CheckKeys(uint64_t id, const ModelPage& page, const Cells& cells, uint64_t lowest) {
    if (cells.empty()) return;
    if (cells.begin()->first < lowest) Problem(id, "a key below its range");
    if (page.right != 0 && cells.rbegin()->first >= page.high_key) Problem(id, "a key above its range");
  }

  const ModelPages& pages_;
  const uint32_t tree_;
  std::set<uint64_t> seen_;
  CheckedTree result_;
};

}  // namespace

CheckedTree CheckTree(const ModelPages& pages, uint32_t tree, uint64_t root) {
  return Checker(pages, tree).Check(root);
}

}  // namespace dbx::mm::reference
