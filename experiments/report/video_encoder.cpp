#include <algorithm>
#include <cmath>
#include <cstring>

#include "experiments/report/video_handles.hpp"
#include "experiments/report/video_parts.hpp"

namespace troupe::experiments::video {
namespace {

class LibavFile final : public VideoFile {
public:
  LibavFile(const std::filesystem::path& path, int width, int height)
      : path_(path.string()),
        width_(width),
        height_(height),
        gif_(path.extension() == ".gif"),
        pixels_(gif_ ? AV_PIX_FMT_RGB8 : AV_PIX_FMT_YUV420P) {}
  ~LibavFile() override {
    if (file_ != nullptr) {
      if (file_->pb != nullptr) {
        avio_closep(&file_->pb);
      }
      avformat_free_context(file_);
      if (!finished_) {
        std::error_code ignored;
        std::filesystem::remove(path_, ignored);
      }
    }
  }
  LibavFile(const LibavFile&) = delete;
  LibavFile& operator=(const LibavFile&) = delete;

  void open(double frames_per_second) {
    av_log_set_level(AV_LOG_ERROR);
    check(avformat_alloc_output_context2(&file_, nullptr, gif_ ? "gif" : "mp4", path_.c_str()),
          path_, "cannot be made");
    const AVRational time_base = av_inv_q(av_d2q(frames_per_second, 10'000));
    if (gif_ ? !open_codec("gif", time_base)
             : !open_codec("libx264", time_base) && !open_codec("mpeg4", time_base)) {
      throw std::runtime_error(path_ + ": libavcodec has "
                               + (gif_ ? "no gif" : "neither libx264 nor mpeg4")
                               + "; install libavcodec59");
    }
    stream_ = avformat_new_stream(file_, nullptr);
    stream_->time_base = time_base;
    stream_->avg_frame_rate = av_inv_q(time_base);
    check(avcodec_parameters_from_context(stream_->codecpar, codec_.get()), path_,
          "cannot be made");
    check(avio_open(&file_->pb, path_.c_str(), AVIO_FLAG_WRITE), path_, "cannot be written");
    check(avformat_write_header(file_, nullptr), path_, "cannot be written");
    frame_->format = pixels_;
    frame_->width = codec_->width;
    frame_->height = codec_->height;
    check(av_frame_get_buffer(frame_.get(), 0), path_, "cannot be encoded");
    make_scaler();
  }

  void add(std::span<const std::uint8_t> rgb) override {
    if (finished_) {
      throw std::invalid_argument(path_ + ": is finished");
    }
    if (rgb.size() != static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_) * 3) {
      throw std::invalid_argument(path_ + ": a frame has " + std::to_string(rgb.size())
                                  + " bytes; it must have width x height x 3");
    }
    const std::uint8_t* planes[1] = {rgb.data()};
    const int strides[1] = {width_ * 3};
    check(av_frame_make_writable(frame_.get()), path_, "cannot be encoded");
    sws_scale(scaler_.get(), planes, strides, 0, height_, frame_->data, frame_->linesize);
    frame_->pts = count_++;
    check(avcodec_send_frame(codec_.get(), frame_.get()), path_, "cannot be encoded");
    drain();
  }

  void finish() override {
    if (finished_) {
      return;
    }
    if (count_ == 0) {
      throw std::runtime_error(path_ + ": has no frames");
    }
    check(avcodec_send_frame(codec_.get(), nullptr), path_, "cannot be encoded");
    drain();
    check(av_write_trailer(file_), path_, "cannot be written");
    check(avio_closep(&file_->pb), path_, "cannot be written");
    finished_ = true;
  }

  std::int64_t frames() const override { return count_; }
  std::string codec() const override { return codec_->codec->name; }

private:
  bool open_codec(const char* name, AVRational time_base) {
    const AVCodec* encoder = avcodec_find_encoder_by_name(name);
    if (encoder == nullptr) {
      return false;
    }
    codec_.reset(avcodec_alloc_context3(encoder));
    const int shrink = (std::max(width_, height_) + kMostGifPixels - 1) / kMostGifPixels;
    codec_->width = gif_ ? std::max(1, width_ / shrink) : (width_ + 1) / 2 * 2;
    codec_->height = gif_ ? std::max(1, height_ / shrink) : (height_ + 1) / 2 * 2;
    codec_->time_base = time_base;
    codec_->framerate = av_inv_q(time_base);
    codec_->pix_fmt = pixels_;
    codec_->gop_size = 60;
    codec_->bit_rate = 0;
    if ((file_->oformat->flags & AVFMT_GLOBALHEADER) != 0) {
      codec_->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    }
    AVDictionary* options = nullptr;
    if (std::strcmp(name, "libx264") == 0) {
      av_dict_set(&options, "crf", "20", 0);
      av_dict_set(&options, "preset", "veryfast", 0);
      av_dict_set(&options, "threads", "1", 0);
    } else if (!gif_) {
      codec_->flags |= AV_CODEC_FLAG_QSCALE;
      codec_->global_quality = FF_QP2LAMBDA * 3;
    }
    const int result = avcodec_open2(codec_.get(), encoder, &options);
    av_dict_free(&options);
    return result >= 0;
  }

  /// A GIF is dithered by a fixed pattern, so that areas without motion cost no bytes.
  void make_scaler() {
    scaler_.reset(sws_alloc_context());
    av_opt_set_int(scaler_.get(), "srcw", width_, 0);
    av_opt_set_int(scaler_.get(), "srch", height_, 0);
    av_opt_set_int(scaler_.get(), "src_format", AV_PIX_FMT_RGB24, 0);
    av_opt_set_int(scaler_.get(), "dstw", codec_->width, 0);
    av_opt_set_int(scaler_.get(), "dsth", codec_->height, 0);
    av_opt_set_int(scaler_.get(), "dst_format", pixels_, 0);
    av_opt_set_int(scaler_.get(), "sws_flags", SWS_BICUBIC | SWS_FULL_CHR_H_INP | SWS_ACCURATE_RND,
                   0);
    av_opt_set(scaler_.get(), "sws_dither", gif_ ? "a_dither" : "auto", 0);
    check(sws_init_context(scaler_.get(), nullptr, nullptr), path_, "cannot be encoded");
  }

  void drain() {
    while (true) {
      const int result = avcodec_receive_packet(codec_.get(), packet_.get());
      if (result == AVERROR(EAGAIN) || result == AVERROR_EOF) {
        return;
      }
      check(result, path_, "cannot be encoded");
      packet_->duration = 1;
      av_packet_rescale_ts(packet_.get(), codec_->time_base, stream_->time_base);
      packet_->stream_index = stream_->index;
      check(av_interleaved_write_frame(file_, packet_.get()), path_, "cannot be written");
    }
  }

  std::string path_;
  int width_ = 0; // of the pictures
  int height_ = 0;
  bool gif_ = false;
  AVPixelFormat pixels_ = AV_PIX_FMT_NONE;
  AVFormatContext* file_ = nullptr;
  AVStream* stream_ = nullptr;
  Codec codec_;
  Scaler scaler_;
  Frame frame_{av_frame_alloc()};
  Packet packet_{av_packet_alloc()};
  std::int64_t count_ = 0;
  bool finished_ = false;
};

} // namespace

std::unique_ptr<VideoFile> write(const std::filesystem::path& path, int width, int height,
                                 double frames_per_second) {
  if (width < 2 || height < 2 || width > 4096 || height > 4096) {
    throw std::invalid_argument(path.string() + ": a video of " + std::to_string(width) + " x "
                                + std::to_string(height) + "; both must be from 2 to 4096 pixels");
  }
  if (!(frames_per_second > 0 && frames_per_second <= 1000)) {
    throw std::invalid_argument(path.string()
                                + ": frames per second must be above 0 and at most 1000");
  }
  auto file = std::make_unique<LibavFile>(path, width, height);
  file->open(frames_per_second);
  return file;
}

} // namespace troupe::experiments::video
