#include "experiments/report/video.hpp"

#include <cmath>
#include <cstring>

#include "experiments/report/video_handles.hpp"

namespace troupe::experiments {

using video::check;

struct VideoWriter::Impl {
  std::string path;
  int width = 0; // of the pictures; the video's are rounded up to even numbers
  int height = 0;
  AVFormatContext* file = nullptr;
  AVStream* stream = nullptr;
  video::Codec codec;
  video::Scaler scaler;
  video::Frame rgb{av_frame_alloc()};
  video::Frame frame{av_frame_alloc()};
  video::Packet packet{av_packet_alloc()};
  std::int64_t count = 0;
  bool finished = false;

  ~Impl() {
    if (file != nullptr) {
      if (file->pb != nullptr) {
        avio_closep(&file->pb);
      }
      avformat_free_context(file);
      if (!finished) {
        std::error_code ignored;
        std::filesystem::remove(path, ignored);
      }
    }
  }

  bool open_codec(const char* name, AVRational time_base) {
    const AVCodec* encoder = avcodec_find_encoder_by_name(name);
    if (encoder == nullptr) {
      return false;
    }
    codec.reset(avcodec_alloc_context3(encoder));
    codec->width = (width + 1) / 2 * 2;
    codec->height = (height + 1) / 2 * 2;
    codec->time_base = time_base;
    codec->framerate = av_inv_q(time_base);
    codec->pix_fmt = AV_PIX_FMT_YUV420P;
    codec->gop_size = 60;
    codec->bit_rate = 0;
    if ((file->oformat->flags & AVFMT_GLOBALHEADER) != 0) {
      codec->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    }
    AVDictionary* options = nullptr;
    if (std::strcmp(name, "libx264") == 0) {
      av_dict_set(&options, "crf", "20", 0);
      av_dict_set(&options, "preset", "veryfast", 0);
      av_dict_set(&options, "threads", "1", 0);
    } else {
      codec->flags |= AV_CODEC_FLAG_QSCALE;
      codec->global_quality = FF_QP2LAMBDA * 3;
    }
    const int result = avcodec_open2(codec.get(), encoder, &options);
    av_dict_free(&options);
    return result >= 0;
  }

  void drain() {
    while (true) {
      const int result = avcodec_receive_packet(codec.get(), packet.get());
      if (result == AVERROR(EAGAIN) || result == AVERROR_EOF) {
        return;
      }
      check(result, path, "cannot be encoded");
      packet->duration = 1;
      av_packet_rescale_ts(packet.get(), codec->time_base, stream->time_base);
      packet->stream_index = stream->index;
      check(av_interleaved_write_frame(file, packet.get()), path, "cannot be written");
    }
  }
};

VideoWriter::VideoWriter(const std::filesystem::path& path, int width, int height,
                         double frames_per_second)
    : impl_(std::make_unique<Impl>()) {
  if (width < 2 || height < 2 || width > 4096 || height > 4096) {
    throw std::invalid_argument(path.string() + ": a video of " + std::to_string(width) + " x "
                                + std::to_string(height) + "; both must be from 2 to 4096 pixels");
  }
  if (!(frames_per_second > 0 && frames_per_second <= 1000)) {
    throw std::invalid_argument(path.string()
                                + ": frames per second must be above 0 and at most 1000");
  }
  Impl& self = *impl_;
  self.path = path.string();
  self.width = width;
  self.height = height;
  av_log_set_level(AV_LOG_ERROR);
  check(avformat_alloc_output_context2(&self.file, nullptr, "mp4", self.path.c_str()), self.path,
        "cannot be made");
  const AVRational time_base = av_inv_q(av_d2q(frames_per_second, 10'000));
  if (!self.open_codec("libx264", time_base) && !self.open_codec("mpeg4", time_base)) {
    throw std::runtime_error(self.path
                             + ": libavcodec has neither libx264 nor mpeg4; install "
                               "libavcodec59");
  }
  self.stream = avformat_new_stream(self.file, nullptr);
  self.stream->time_base = time_base;
  self.stream->avg_frame_rate = av_inv_q(time_base);
  check(avcodec_parameters_from_context(self.stream->codecpar, self.codec.get()), self.path,
        "cannot be made");
  check(avio_open(&self.file->pb, self.path.c_str(), AVIO_FLAG_WRITE), self.path,
        "cannot be written");
  check(avformat_write_header(self.file, nullptr), self.path, "cannot be written");
  self.frame->format = AV_PIX_FMT_YUV420P;
  self.frame->width = self.codec->width;
  self.frame->height = self.codec->height;
  check(av_frame_get_buffer(self.frame.get(), 0), self.path, "cannot be encoded");
  self.scaler.reset(sws_getContext(
      width, height, AV_PIX_FMT_RGB24, self.codec->width, self.codec->height, AV_PIX_FMT_YUV420P,
      SWS_BICUBIC | SWS_FULL_CHR_H_INP | SWS_ACCURATE_RND, nullptr, nullptr, nullptr));
}

VideoWriter::~VideoWriter() = default;

void VideoWriter::add(std::span<const std::uint8_t> rgb) {
  Impl& self = *impl_;
  if (self.finished) {
    throw std::invalid_argument(self.path + ": is finished");
  }
  if (rgb.size()
      != static_cast<std::size_t>(self.width) * static_cast<std::size_t>(self.height) * 3) {
    throw std::invalid_argument(self.path + ": a frame has " + std::to_string(rgb.size())
                                + " bytes; it must have width x height x 3");
  }
  const std::uint8_t* planes[1] = {rgb.data()};
  const int strides[1] = {self.width * 3};
  check(av_frame_make_writable(self.frame.get()), self.path, "cannot be encoded");
  sws_scale(self.scaler.get(), planes, strides, 0, self.height, self.frame->data,
            self.frame->linesize);
  self.frame->pts = self.count++;
  check(avcodec_send_frame(self.codec.get(), self.frame.get()), self.path, "cannot be encoded");
  self.drain();
}

void VideoWriter::finish() {
  Impl& self = *impl_;
  if (self.finished) {
    return;
  }
  if (self.count == 0) {
    throw std::runtime_error(self.path + ": has no frames");
  }
  check(avcodec_send_frame(self.codec.get(), nullptr), self.path, "cannot be encoded");
  self.drain();
  check(av_write_trailer(self.file), self.path, "cannot be written");
  check(avio_closep(&self.file->pb), self.path, "cannot be written");
  self.finished = true;
}

std::int64_t VideoWriter::frames() const {
  return impl_->count;
}
std::string VideoWriter::codec() const {
  return impl_->codec->codec->name;
}

} // namespace troupe::experiments
