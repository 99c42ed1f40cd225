// The messages between masters and Page Stores, numbers 300-399.
//
//   master -> Page Store   ReadPageAt, ReadPageBelow, FoldPages
//   Page Store -> master   PageRead
//
// Decode yields nothing for bytes that no Encode has written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "multi_master/names.h"
#include "multi_master/network.h"
#include "multi_master/page/slotted_page.h"
#include "multi_master/vs_clock.h"
#include "multi_master/wire.h"

namespace dbx::mm {

// The asker's number for a request, which its answer bears.
using RequestId = StrongInt<struct RequestIdTag>;

// The version with this LSN. It is answered once the version is there: a page lock was granted with it, so it is
// durable in a log.
struct ReadPageAt {
  static constexpr MessageType kType{300};
  RequestId request;
  PageId page;
  PageLsn lsn;

  void Encode(WireWriter& to) const;
  static ReadPageAt Decode(WireReader& from);
};

// The newest version that `tv` covers. It is answered once all logs up to `tv` have been read. The asker's own element
// is no later than the durable end of its log.
struct ReadPageBelow {
  static constexpr MessageType kType{301};
  RequestId request;
  PageId page;
  VsVector tv;

  void Encode(WireWriter& to) const;
  static ReadPageBelow Decode(WireReader& from);
};

// No master reads a version that is older than the newest one that `least_tv` covers.
struct FoldPages {
  static constexpr MessageType kType{303};
  VsVector least_tv;

  void Encode(WireWriter& to) const { to.Put(least_tv); }
  static FoldPages Decode(WireReader& from) { return {from.GetVector()}; }
};

// The answer to the first two. Without a page: no such version is kept. The bytes of the page may be anything; the
// receiver checks them.
struct PageRead {
  static constexpr MessageType kType{302};
  RequestId request;
  VsVector newest;
  std::unique_ptr<SlottedPage> page;

  void Encode(WireWriter& to) const;
  static PageRead Decode(WireReader& from);
};

}  // namespace dbx::mm
