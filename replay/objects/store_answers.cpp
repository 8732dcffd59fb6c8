#include "replay/objects/store_answers.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <libxml/xmlreader.h>

#include "env/text/number_in.hpp"
#include "replay/objects/key_answers.hpp"

namespace troupe::replay {

namespace {

constexpr std::size_t kMostBytes = std::size_t{16} << 20;
constexpr std::size_t kMostText = 4096; // bytes per element
constexpr std::size_t kMostToken = 16 << 10;
constexpr int kDeepest = 8;

struct FreeReader {
  void operator()(xmlTextReader* reader) const { xmlFreeTextReader(reader); }
};

[[noreturn]] void refuse_answer(const std::string& why) {
  throw std::runtime_error("the object store sent an answer that " + why
                           + "; is AWS_ENDPOINT_URL a server that speaks S3?");
}

std::string_view view(const xmlChar* text) {
  return text == nullptr ? std::string_view() : reinterpret_cast<const char*>(text);
}

/// Calls `leaf(path, text)` at the end of each element. `path` consists of the names of the element
/// and its ancestors, joined by slashes; `text` is the text directly in the element.
void read_elements(const std::string& xml,
                   const std::function<void(const std::string&, const std::string&)>& leaf,
                   std::size_t most_text = kMostText) {
  if (xml.size() > kMostBytes)
    refuse_answer("has more than 16 MiB");
  const int options = XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING;
  const std::unique_ptr<xmlTextReader, FreeReader> reader(
      xmlReaderForMemory(xml.data(), static_cast<int>(xml.size()), nullptr, nullptr, options));
  if (!reader)
    throw std::bad_alloc();
  std::vector<std::string> texts;
  std::string path;
  const auto end_element = [&] {
    leaf(path, texts.back());
    texts.pop_back();
    path.erase(texts.empty() ? 0 : path.rfind('/'));
  };
  int more = 0;
  while ((more = xmlTextReaderRead(reader.get())) == 1) {
    switch (xmlTextReaderNodeType(reader.get())) {
    case XML_READER_TYPE_ELEMENT:
      if (texts.size() >= static_cast<std::size_t>(kDeepest))
        refuse_answer("is nested more than 8 deep");
      path +=
          (texts.empty() ? "" : "/") + std::string(view(xmlTextReaderConstLocalName(reader.get())));
      texts.emplace_back();
      if (xmlTextReaderIsEmptyElement(reader.get()) == 1)
        end_element();
      break;
    case XML_READER_TYPE_END_ELEMENT:
      end_element();
      break;
    case XML_READER_TYPE_TEXT:
    case XML_READER_TYPE_CDATA:
    case XML_READER_TYPE_SIGNIFICANT_WHITESPACE:
      if (texts.empty())
        break;
      texts.back() += view(xmlTextReaderConstValue(reader.get()));
      if (texts.back().size() > most_text)
        refuse_answer("has an element of more than " + std::to_string(most_text) + " bytes");
      break;
    case XML_READER_TYPE_DOCUMENT_TYPE:
    case XML_READER_TYPE_ENTITY_REFERENCE:
      refuse_answer("has a document type or an entity");
    default:
      break;
    }
  }
  if (more != 0)
    refuse_answer("is no XML");
}

std::int64_t parse_size(const std::string& text) {
  const auto value = env::number_in<std::int64_t>(text);
  if (!value || *value < 0)
    refuse_answer("has an object without a size");
  return *value;
}

/// Checks an ETag, which will be sent in a header.
std::string parse_etag(const std::string& text) {
  if (text.size() > 256
      || !std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < '\x7f'; }))
    refuse_answer("has an object with an invalid ETag");
  return text;
}

} // namespace

ListingPage parse_listing(const std::string& xml, int most_keys) {
  ListingPage page;
  const StoredObject none{.key = {}, .bytes = -1};
  StoredObject object = none;
  bool listed = false, truncated = false;
  read_elements(xml, [&](const std::string& path, const std::string& text) {
    if (path == "ListBucketResult/Contents/Key")
      object.key = text;
    else if (path == "ListBucketResult/Contents/Size")
      object.bytes = parse_size(text);
    else if (path == "ListBucketResult/Contents/ETag")
      object.etag = parse_etag(text);
    else if (path == "ListBucketResult/Contents") {
      if (object.key.empty() || object.bytes < 0)
        refuse_answer("has an object without a key or size");
      page.objects.push_back(std::exchange(object, none));
    } else if (path == "ListBucketResult/CommonPrefixes/Prefix")
      page.prefixes.push_back(text);
    else if (path == "ListBucketResult/IsTruncated")
      truncated = text == "true";
    else if (path == "ListBucketResult/NextContinuationToken")
      page.next = text;
    else if (path == "ListBucketResult")
      listed = true;
    if (page.objects.size() + page.prefixes.size() > static_cast<std::size_t>(most_keys))
      refuse_answer("lists more keys than were asked for");
  });
  if (!listed)
    refuse_answer("is no listing");
  if (truncated && page.next.empty())
    refuse_answer("ends a page without saying where the next one begins");
  if (!truncated)
    page.next.clear();
  return page;
}

std::string parse_upload_id(const std::string& xml) {
  std::string id;
  read_elements(xml, [&](const std::string& path, const std::string& text) {
    if (path == "InitiateMultipartUploadResult/UploadId")
      id = text;
  });
  if (id.empty())
    refuse_answer("has no UploadId");
  return id;
}

StoreKeys parse_assumed_role(const std::string& xml) {
  const std::string within =
      "AssumeRoleWithWebIdentityResponse/AssumeRoleWithWebIdentityResult/Credentials/";
  StoreKeys keys;
  std::string expires;
  try {
    read_elements(
        xml,
        [&](const std::string& path, const std::string& text) {
          if (path == within + "AccessKeyId")
            keys.access_key = text;
          else if (path == within + "SecretAccessKey")
            keys.secret_key = text;
          else if (path == within + "SessionToken")
            keys.session_token = text;
          else if (path == within + "Expiration")
            expires = text;
        },
        kMostToken);
  } catch (const std::runtime_error&) {
    throw std::runtime_error("the answer is not the XML of AssumeRoleWithWebIdentity");
  }
  if (!is_secret(keys.access_key) || !is_secret(keys.secret_key) || !is_secret(keys.session_token))
    throw std::runtime_error("the answer has no AccessKeyId, SecretAccessKey and SessionToken of "
                             "printable characters");
  keys.expires = parse_expiry(expires);
  return keys;
}

std::string parse_error_code(const std::string& xml) noexcept {
  std::string code;
  try {
    read_elements(xml, [&](const std::string& path, const std::string& text) {
      if (path == "Error/Code" || path == "ErrorResponse/Error/Code")
        code = text;
    });
  } catch (const std::exception&) {
    return {};
  }
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return code.size() <= 64 && std::all_of(code.begin(), code.end(), fits) ? code : "";
}

} // namespace troupe::replay
