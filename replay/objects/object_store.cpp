#include "replay/objects/object_store.hpp"

#include <algorithm>

#include "env/whole_file.hpp"
#include "replay/objects/store_error.hpp"

namespace troupe::replay {

namespace {

constexpr std::uint64_t kMostParts = 10'000; // limit of S3

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text)
    result += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return result;
}

} // namespace

void ObjectStore::put_bytes(const ObjectAddress& to, std::span<const std::byte> bytes) {
  send({.method = "PUT", .bucket = to.bucket, .key = to.key, .body = bytes});
}

void ObjectStore::put_file(const ObjectAddress& to, const std::filesystem::path& file,
                           const std::function<void(std::int64_t)>& sent) {
  std::uint64_t size = 0;
  {
    env::FileReader reader(file);
    size = reader.left();
    if (size <= requests_.options().part_bytes) {
      std::vector<std::byte> bytes(size);
      if (!reader.read(bytes.data(), size))
        throw StoreError(file.string() + " became shorter while it was read");
      put_bytes(to, bytes);
      if (sent)
        sent(static_cast<std::int64_t>(size));
      return;
    }
  }
  put_parts(to, file, size, sent);
}

void ObjectStore::put_parts(const ObjectAddress& to, const std::filesystem::path& file,
                            std::uint64_t size, const std::function<void(std::int64_t)>& sent) {
  const std::uint64_t part =
      std::max<std::uint64_t>(requests_.options().part_bytes, (size + kMostParts - 1) / kMostParts);
  if (part > kLargestPart)
    throw StoreError(file.string() + " has " + std::to_string(size)
                     + " bytes; a file in an object store has at most 10000 parts of 512 MiB");
  const std::string id = parse_upload_id(
      send({.method = "POST", .bucket = to.bucket, .key = to.key, .query = {{"uploads", ""}}})
          .body);
  try {
    env::FileReader reader(file);
    std::vector<std::byte> bytes;
    std::vector<std::string> etags;
    for (std::uint64_t at = 0; at < size; at += bytes.size()) {
      bytes.resize(std::min(part, size - at));
      if (!reader.read(bytes.data(), bytes.size()))
        throw StoreError(file.string() + " became shorter while it was read");
      etags.push_back(put_part(to, id, etags.size() + 1, bytes));
      if (sent)
        sent(static_cast<std::int64_t>(bytes.size()));
    }
    complete(to, id, etags, size);
  } catch (...) {
    try {
      send({.method = "DELETE", .bucket = to.bucket, .key = to.key, .query = {{"uploadId", id}}});
    } catch (const StoreError&) { // the first failure is reported instead
    }
    throw;
  }
}

std::string ObjectStore::put_part(const ObjectAddress& to, const std::string& id,
                                  std::size_t number, std::span<const std::byte> bytes) {
  const auto answer = send({.method = "PUT",
                            .bucket = to.bucket,
                            .key = to.key,
                            .query = {{"partNumber", std::to_string(number)}, {"uploadId", id}},
                            .body = bytes});
  if (answer.etag.empty())
    throw StoreError("the object store stored a part of " + text_of(to)
                     + " without an ETag; is AWS_ENDPOINT_URL a server that speaks S3?");
  return answer.etag;
}

void ObjectStore::complete(const ObjectAddress& to, const std::string& id,
                           const std::vector<std::string>& etags, std::uint64_t expected) {
  std::string parts = "<CompleteMultipartUpload>";
  for (std::size_t i = 0; i < etags.size(); ++i)
    parts += "<Part><PartNumber>" + std::to_string(i + 1) + "</PartNumber><ETag>"
             + escaped(etags[i]) + "</ETag></Part>";
  parts += "</CompleteMultipartUpload>";
  std::string code;
  try {
    const auto answer = send({.method = "POST",
                              .bucket = to.bucket,
                              .key = to.key,
                              .query = {{"uploadId", id}},
                              .headers = {"Content-Type: application/xml"},
                              .body = bytes_of(parts)});
    code = parse_error_code(answer.body); // the server sends status 200 before it knows the outcome
  } catch (const StoreError& e) {
    if (e.code() != "NoSuchUpload")
      throw;
    code = e.code(); // it was completed already if the answer to an earlier attempt was lost
  }
  if (code == "NoSuchUpload" && size(to) == static_cast<std::int64_t>(expected))
    return;
  if (!code.empty())
    throw StoreError("the object store could not put the parts of " + text_of(to)
                     + " together: " + code + "; try again");
}

std::string ObjectStore::get_bytes(const ObjectAddress& from, std::size_t most) {
  return send({.method = "GET", .bucket = from.bucket, .key = from.key, .most_answered = most})
      .body;
}

std::string ObjectStore::get_range(const ObjectAddress& from, std::uint64_t at, std::uint64_t end,
                                   const std::string& etag) {
  StoreRequest request{
      .method = "GET",
      .bucket = from.bucket,
      .key = from.key,
      .headers = {"Range: bytes=" + std::to_string(at) + "-" + std::to_string(end - 1)},
      .most_answered = end - at};
  if (!etag.empty())
    request.headers.push_back("If-Match: " + etag);
  auto answer = send(request);
  if (answer.body.size() != end - at)
    throw StoreError(text_of(from) + " should give " + std::to_string(end - at)
                     + " bytes at offset " + std::to_string(at) + ", the object store sent "
                     + std::to_string(answer.body.size()));
  return std::move(answer.body);
}

void ObjectStore::continue_file(const std::string& bucket, const StoredObject& object,
                                const std::filesystem::path& file,
                                const std::function<void()>& on_part) {
  const auto size = static_cast<std::uint64_t>(object.bytes);
  env::FileAppender out(file);
  for (std::uint64_t at = std::filesystem::file_size(file); at < size;) {
    const auto end = std::min<std::uint64_t>(size, at + requests_.options().part_bytes);
    const auto bytes = get_range({.bucket = bucket, .key = object.key}, at, end, object.etag);
    out.append(bytes.data(), bytes.size());
    at = end;
    if (on_part)
      on_part();
  }
}

void ObjectStore::get_file(const ObjectAddress& from, const std::filesystem::path& file) {
  const auto head = send({.method = "HEAD", .bucket = from.bucket, .key = from.key});
  if (!head.length || *head.length < 0)
    throw StoreError("the object store does not say how large " + text_of(from)
                     + " is; is AWS_ENDPOINT_URL a server that speaks S3?");
  const auto size = static_cast<std::uint64_t>(*head.length);
  env::WholeFileWriter writer(file);
  for (std::uint64_t at = 0; at < size;) {
    const std::uint64_t end = std::min<std::uint64_t>(size, at + requests_.options().part_bytes);
    const auto bytes = get_range(from, at, end, head.etag);
    writer.write(bytes.data(), bytes.size());
    at = end;
  }
  writer.commit();
}

std::int64_t ObjectStore::size(const ObjectAddress& of) {
  return send({.method = "HEAD", .bucket = of.bucket, .key = of.key}).length.value_or(-1);
}

void ObjectStore::list_pages(const ObjectAddress& folder, bool folders, std::size_t most,
                             const std::function<void(ListingPage&)>& on_page) {
  std::size_t found = 0;
  std::string next;
  do {
    StoreRequest request{.method = "GET",
                         .bucket = folder.bucket,
                         .query = {{"list-type", "2"},
                                   {"max-keys", std::to_string(requests_.options().page_keys)},
                                   {"prefix", folder.key.empty() ? "" : folder.key + "/"}}};
    if (folders)
      request.query["delimiter"] = "/";
    if (!next.empty())
      request.query["continuation-token"] = next;
    ListingPage page = parse_listing(send(request).body, requests_.options().page_keys);
    found += page.objects.size() + page.prefixes.size();
    if (found > most || (found == 0 && !page.next.empty()) || (page.next == next && !next.empty()))
      throw StoreError("the listing of " + text_of(folder) + " does not end after "
                       + std::to_string(found) + " keys; use a prefix with fewer objects");
    on_page(page);
    next = page.next;
  } while (!next.empty());
}

std::vector<StoredObject> ObjectStore::list(const ObjectAddress& folder, std::size_t most) {
  std::vector<StoredObject> objects;
  list_pages(folder, false, most, [&](ListingPage& page) {
    std::move(page.objects.begin(), page.objects.end(), std::back_inserter(objects));
  });
  return objects;
}

std::vector<std::string> ObjectStore::folders(const ObjectAddress& folder, std::size_t most) {
  std::vector<std::string> names;
  const std::size_t before = folder.key.empty() ? 0 : folder.key.size() + 1;
  list_pages(folder, true, most, [&](const ListingPage& page) {
    for (const std::string& prefix : page.prefixes)
      if (prefix.size() > before + 1 && prefix.ends_with('/'))
        if (std::string name = prefix.substr(before, prefix.size() - before - 1);
            is_plain_name(name) && name.find('/') == name.npos)
          names.push_back(std::move(name));
  });
  return names;
}

void ObjectStore::remove(const ObjectAddress& object) {
  try {
    send({.method = "DELETE", .bucket = object.bucket, .key = object.key});
  } catch (const StoreError& e) {
    if (e.status() != 404 || e.code() == "NoSuchBucket")
      throw;
  }
}

} // namespace troupe::replay
