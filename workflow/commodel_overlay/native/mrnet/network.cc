// network.cc: what overlay-bench needs of overlay.h, by MRNet: the same benchmark then measures MRNet.
//
// A packet of the overlay network travels as one array of bytes. A back-end learns its number, which counts the ranks of
// all back-ends in MRNet's order, from the first packet that it gets.
#include "frames.h"

#include "mrnet/MRNet.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <unistd.h>
#include <vector>

using namespace MRN;

struct OverlayComm {
  OverlayNetwork *network;
  Communicator *comm;
};

struct OverlayStream {
  OverlayNetwork *network;
  Stream *stream;
};

struct OverlayNetwork {
  Network *net;
  std::vector<Rank> backends; // in the front-end
  int backend;                // own number; -1 in the front-end
  int filter;                 // of all streams that have one
  OverlayComm all;
  OverlayStream *hello;
  std::map<Stream *, OverlayStream *> streams; // in a back-end
};

enum { HELLO = 1000, PATIENCE = 60 /* seconds */, FAILED = 3 };

namespace {
// MRNet's processes take seconds to notice that their front-end is gone, and some never do: they end with it, if its
// process group is its own, as whatever measures has it.
void end_group(int)
{
  signal(SIGTERM, SIG_IGN);
  if (getpgrp() == getpid()) kill(0, SIGTERM), kill(0, SIGCONT);
  _exit(FAILED);
}

// MRNet waits without end for a process of its own that does not come, or does not go.
class Limit {
public:
  Limit()
  {
    signal(SIGALRM, give_up);
    alarm(PATIENCE);
  }
  ~Limit() { alarm(0); }

private:
  static void give_up(int)
  {
    static const char why[] = "MRNet: a network has not started or ended within 60 s\n";
    ssize_t ignored = write(STDERR_FILENO, why, sizeof why - 1);
    (void)ignored;
    end_group(0);
  }
};

std::string beside_this_program(const char *name)
{
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0) return name;
  std::string own(path, size_t(length));
  return own.substr(0, own.rfind('/') + 1) + name;
}

OverlayPacket *packet_in(PacketPtr &received)
{
  unsigned char *bytes = NULL;
  uint64_t count = 0;
  if (received->unpack("%auc", &bytes, &count) == -1) return overlay_fail("found a packet of no such type"), nullptr;
  OverlayPacket *packet = packet_of_frame(bytes, count);
  free(bytes);
  return packet;
}

int send(Stream *stream, const OverlayPacket *packet)
{
  void *copy = frame_copy(packet);
  if (!copy) return overlay_fail("no memory for a packet");
  PacketPtr sent(new Packet(stream->get_Id(), FIRST_TAG + overlay_tag(packet), "%auc", copy, uint64_t(frame_bytes(packet))));
  sent->set_DestroyData(true);
  return stream->send(sent) == -1 ? overlay_fail("MRNet: a packet could not be sent") : OVERLAY_OK;
}

OverlayStream *stream_of(OverlayNetwork *network, Stream *stream)
{
  OverlayStream *&known = network->streams[stream];
  if (!known) known = new OverlayStream{network, stream};
  return known;
}
} // namespace

// ---- front-end ----
OverlayNetwork *overlay_start(const OverlayOptions *options)
{
  if (options->launch) return overlay_fail("MRNet starts its processes itself: set XPLAT_RSH for other hosts"), nullptr;
  Limit limit;
  signal(SIGTERM, end_group);
  std::map<std::string, std::string> attributes;
  attributes["MRNET_COMMNODE_PATH"] = COMMODEL_MRNET "/bin/mrnet_commnode";
  const char *arguments[] = {options->backend[1], NULL};
  Network *net = Network::CreateNetworkFE(options->topology, options->backend[0], arguments, &attributes);
  if (!net || net->has_Error()) {
    delete net;
    return overlay_fail("MRNet: the network of %s did not start", options->topology), nullptr;
  }
  net->set_FailureRecovery(false);
  OverlayNetwork *network = new OverlayNetwork{net, {}, -1, -1, {}, nullptr, {}};
  network->all = {network, net->get_BroadcastCommunicator()};
  std::set<Rank> ranks;
  for (CommunicationNode *node : network->all.comm->get_EndPoints()) ranks.insert(node->get_Rank());
  network->backends.assign(ranks.begin(), ranks.end());
  network->filter = net->load_FilterFunc(beside_this_program("overlay-on-mrnet.so").c_str(), "overlay_on_mrnet");
  if (network->filter == -1) {
    overlay_close(network);
    return overlay_fail("MRNet: cannot load overlay-on-mrnet.so"), nullptr;
  }
  Stream *hello = net->new_Stream(network->all.comm, TFILTER_NULL, SFILTER_DONTWAIT);
  if (hello->send(HELLO, "%aud", network->backends.data(), uint64_t(network->backends.size())) == -1 || hello->flush() == -1) {
    overlay_close(network);
    return overlay_fail("MRNet: back-ends could not be told their numbers"), nullptr;
  }
  network->hello = new OverlayStream{network, hello};
  return network;
}

const char *overlay_backend_name(const OverlayNetwork *, int) { return ""; }

int overlay_skew(OverlayNetwork *, int, int, double *, double *) { return overlay_fail("MRNet: clocks are not compared here"); }

int overlay_metrics(OverlayNetwork *, double, const OverlayMetrics **) { return overlay_fail("MRNet: nothing is counted here"); }

OverlayComm *overlay_broadcast(OverlayNetwork *network) { return &network->all; }

OverlayComm *overlay_subset(OverlayNetwork *network, const int *backends, int count)
{
  std::set<Rank> ranks;
  for (int i = 0; i < count; i++) ranks.insert(network->backends.at(size_t(backends[i])));
  return new OverlayComm{network, network->net->new_Communicator(ranks)};
}

void overlay_free_comm(OverlayComm *comm)
{
  if (comm != &comm->network->all) delete comm;
}

OverlayStream *overlay_open(OverlayComm *comm, const OverlayStreamOptions *options)
{
  const char *filter = options && options->filter ? options->filter : "none";
  bool none = std::string(filter) == "none";
  int sync = options && options->sync == OVERLAY_DO_NOT_WAIT ? SFILTER_DONTWAIT : SFILTER_WAITFORALL;
  Stream *stream = comm->network->net->new_Stream(comm->comm, none ? TFILTER_NULL : comm->network->filter, sync);
  if (!stream || (!none && stream->set_FilterParameters(FILTER_UPSTREAM_TRANS, "%s", filter) == -1))
    return overlay_fail("MRNet: no stream with filter %s", filter), nullptr;
  return new OverlayStream{comm->network, stream};
}

void overlay_close_stream(OverlayStream *stream)
{
  delete stream->stream;
  delete stream;
}

int overlay_recv(OverlayStream *stream, double, OverlayPacket **packet)
{
  int tag;
  PacketPtr received;
  if (overlay_flush(stream->network) != OVERLAY_OK) return OVERLAY_FAILED;
  if (stream->stream->recv(&tag, received) != 1) return overlay_fail("MRNet: a stream ended");
  return (*packet = packet_in(received)) ? OVERLAY_OK : OVERLAY_FAILED;
}

// ---- back-end ----
OverlayNetwork *overlay_attach(const char *, int)
{
  Limit limit;
  std::ifstream file("/proc/self/cmdline", std::ios::binary); // MRNet has put there what it wants to know
  std::string word;
  std::vector<std::string> words;
  while (std::getline(file, word, '\0')) words.push_back(word);
  std::vector<char *> arguments;
  for (std::string &each : words) arguments.push_back(&each[0]);
  arguments.push_back(nullptr);
  Network *net = Network::CreateNetworkBE(int(words.size()), arguments.data());
  if (!net || net->has_Error()) return overlay_fail("MRNet: this back-end could not join"), nullptr;
  int tag;
  PacketPtr hello;
  Stream *stream;
  Rank *ranks = nullptr;
  uint64_t count = 0;
  if (net->recv(&tag, hello, &stream) != 1 || tag != HELLO || hello->unpack("%aud", &ranks, &count) == -1)
    return overlay_fail("MRNet: this back-end was not told its number"), nullptr;
  int own = -1;
  for (uint64_t i = 0; i < count; i++)
    if (ranks[i] == net->get_LocalRank()) own = int(i);
  free(ranks);
  return new OverlayNetwork{net, {}, own, -1, {}, nullptr, {}};
}

int overlay_backend(const OverlayNetwork *network) { return network->backend; }

int overlay_recv_any(OverlayNetwork *network, double, OverlayPacket **packet, OverlayStream **stream)
{
  int tag;
  PacketPtr received;
  Stream *from;
  if (overlay_flush(network) != OVERLAY_OK) return OVERLAY_CLOSED;
  for (int code; (code = network->net->recv(&tag, received, &from)) != 1;) // 0: a stream was closed
    if (code < 0 || network->net->is_ShutDown()) return OVERLAY_CLOSED;
  *stream = stream_of(network, from);
  return (*packet = packet_in(received)) ? OVERLAY_OK : OVERLAY_FAILED;
}

// ---- both ----
int overlay_flush(OverlayNetwork *network)
{
  return network->net->flush() == -1 ? overlay_fail("MRNet: packets could not be sent") : OVERLAY_OK;
}

int overlay_send_packet(OverlayStream *stream, OverlayPacket *packet)
{
  if (stream->network->backend < 0) return send(stream->stream, packet);
  OverlayPacket *own = packet_from(packet, stream->network->backend);
  if (!own) return OVERLAY_FAILED;
  int code = send(stream->stream, own);
  overlay_release(own);
  return code;
}

void overlay_close(OverlayNetwork *network)
{
  Limit limit;
  if (network->backend >= 0) network->net->waitfor_ShutDown();
  delete network->hello;
  delete network->net;
  delete network;
}
