// filter.cc: the filter that every process of MRNet loads: a wave through a filter of the overlay network.
#include "frames.h"

#include "mrnet/MRNet.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace MRN;

namespace {
struct Target {
  std::vector<PacketPtr> *out;
  unsigned stream;
};

void emit(void *where, const OverlayPacket *packet)
{
  Target *target = static_cast<Target *>(where);
  void *copy = frame_copy(packet);
  if (!copy) {
    fprintf(stderr, "mrnet: no memory for a packet of %zu bytes\n", size_t(frame_bytes(packet)));
    abort();
  }
  PacketPtr sent(new Packet(target->stream, FIRST_TAG + overlay_tag(packet), "%auc", copy, uint64_t(frame_bytes(packet))));
  sent->set_DestroyData(true);
  target->out->push_back(sent);
}
} // namespace

extern "C" {
const char *overlay_on_mrnet_format_string = "%auc";

void overlay_on_mrnet(std::vector<PacketPtr> &in, std::vector<PacketPtr> &out, std::vector<PacketPtr> &, void **state,
                      PacketPtr &parameters, const TopologyLocalInfo &place)
{
  char *filter = NULL;
  if (place.get_NumChildren() == 0 || parameters == Packet::NullPacket || parameters->unpack("%s", &filter) == -1) {
    out.insert(out.end(), in.begin(), in.end()); // a back-end's own packet
    return;
  }
  std::vector<OverlayPacket *> wave;
  for (PacketPtr &packet : in) {
    unsigned char *bytes = NULL;
    uint64_t count = 0;
    if (packet->unpack("%auc", &bytes, &count) == -1) continue;
    if (OverlayPacket *own = packet_of_frame(bytes, count)) wave.push_back(own);
    free(bytes);
  }
  Target target = {&out, in[0]->get_StreamId()};
  if (!wave.empty() && reduce_wave(state, filter, wave.data(), int(wave.size()), emit, &target) != OVERLAY_OK)
    fprintf(stderr, "mrnet: filter %s: %s\n", filter, overlay_error());
  for (OverlayPacket *packet : wave) overlay_release(packet);
  free(filter);
}
}
