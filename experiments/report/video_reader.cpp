#include <vector>

#include "experiments/report/video_handles.hpp"
#include "experiments/report/video_parts.hpp"

namespace troupe::experiments::video {
namespace {

struct Input {
  AVFormatContext* file = nullptr;
  ~Input() { avformat_close_input(&file); }
};

void note_colours(const AVFrame& frame, VideoInfo& info) {
  // Rows are padded because swscale writes whole vectors and skips the end of an unpadded row.
  const int stride = (frame.width * 3 + 63) / 64 * 64;
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(stride)
                                * (static_cast<std::size_t>(frame.height) + 1));
  const Scaler scaler(sws_getContext(
      frame.width, frame.height, static_cast<AVPixelFormat>(frame.format), frame.width,
      frame.height, AV_PIX_FMT_RGB24, SWS_BILINEAR | SWS_ACCURATE_RND, nullptr, nullptr, nullptr));
  std::uint8_t* planes[1] = {rgb.data()};
  const int strides[1] = {stride};
  sws_scale(scaler.get(), frame.data, frame.linesize, 0, frame.height, planes, strides);
  double sums[3] = {};
  for (int y = 0; y < frame.height; ++y) {
    const std::uint8_t* row = rgb.data() + static_cast<std::ptrdiff_t>(stride) * y;
    for (int i = 0; i < frame.width * 3; ++i) {
      sums[i % 3] += row[i];
    }
  }
  const double pixels = static_cast<double>(frame.width) * frame.height;
  info.mean_red = sums[0] / pixels;
  info.mean_green = sums[1] / pixels;
  info.mean_blue = sums[2] / pixels;
}

void take_frames(AVCodecContext& codec, AVFrame& frame, const std::string& path, VideoInfo& info) {
  while (true) {
    const int result = avcodec_receive_frame(&codec, &frame);
    if (result == AVERROR(EAGAIN) || result == AVERROR_EOF) {
      return;
    }
    check(result, path, "cannot be decoded");
    if (info.frames++ == 0) {
      note_colours(frame, info);
    }
  }
}

} // namespace

VideoInfo read(const std::filesystem::path& file) {
  const std::string path = file.string();
  Input input;
  check(avformat_open_input(&input.file, path.c_str(), nullptr, nullptr), path, "cannot be read");
  check(avformat_find_stream_info(input.file, nullptr), path, "cannot be read");
  const AVCodec* decoder = nullptr;
  const int index = check(av_find_best_stream(input.file, AVMEDIA_TYPE_VIDEO, -1, -1, &decoder, 0),
                          path, "no video");
  const AVStream& stream = *input.file->streams[index];
  const Codec codec(avcodec_alloc_context3(decoder));
  check(avcodec_parameters_to_context(codec.get(), stream.codecpar), path, "cannot be decoded");
  check(avcodec_open2(codec.get(), decoder, nullptr), path, "cannot be decoded");
  VideoInfo info{.width = codec->width,
                 .height = codec->height,
                 .seconds = static_cast<double>(input.file->duration) / AV_TIME_BASE,
                 .codec = avcodec_get_name(codec->codec_id)};
  const Frame frame(av_frame_alloc());
  const Packet packet(av_packet_alloc());
  while (av_read_frame(input.file, packet.get()) >= 0) {
    if (packet->stream_index == index) {
      check(avcodec_send_packet(codec.get(), packet.get()), path, "cannot be decoded");
      take_frames(*codec, *frame, path, info);
    }
    av_packet_unref(packet.get());
  }
  check(avcodec_send_packet(codec.get(), nullptr), path, "cannot be decoded");
  take_frames(*codec, *frame, path, info);
  return info;
}

} // namespace troupe::experiments::video
