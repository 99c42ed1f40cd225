#include "multi_master/store/store_messages.h"

#include <cstring>

namespace dbx::mm {

void ReadPageAt::Encode(WireWriter& to) const {
  to.Put(request);
  to.Put(page);
  to.Put(lsn);
}

ReadPageAt ReadPageAt::Decode(WireReader& from) {
  ReadPageAt read;
  read.request = from.Get<RequestId>();
  read.page = from.Get<PageId>();
  read.lsn = from.GetPageLsn();
  return read;
}

void ReadPageBelow::Encode(WireWriter& to) const {
  to.Put(request);
  to.Put(page);
  to.Put(tv);
}

ReadPageBelow ReadPageBelow::Decode(WireReader& from) {
  ReadPageBelow read;
  read.request = from.Get<RequestId>();
  read.page = from.Get<PageId>();
  read.tv = from.GetVector();
  return read;
}

void PageRead::Encode(WireWriter& to) const {
  to.Put(request);
  to.Put(newest);
  to.PutList(page ? std::span<const std::byte>(page->bytes()) : std::span<const std::byte>());
}

PageRead PageRead::Decode(WireReader& from) {
  PageRead read;
  read.request = from.Get<RequestId>();
  read.newest = from.GetVector();
  const std::span<const std::byte> bytes = from.GetList();
  if (bytes.empty()) return read;
  if (bytes.size() != kPageBytes) {
    from.Refuse();
    return read;
  }
  read.page = std::make_unique<SlottedPage>();
  std::memcpy(read.page->bytes().data(), bytes.data(), kPageBytes);
  return read;
}

}  // namespace dbx::mm
