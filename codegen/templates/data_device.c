/* Kernels and captured graphs read samples at one place, the first slot of the arena. The ring is
 * pinned memory of the host. Its slots are copied on a stream of their own, where there is a second
 * slot on the device to that one, while the samples before them are computed with. */
#define COPIES ((cudaStream_t)m->copies)
#define WAS_READ ((cudaEvent_t)m->event[0])
#define HAS_COME ((cudaEvent_t)m->event[1])
#define READ_AT (m->arena + MODEL_DATA_SLOTS)
#if MODEL_DATA_AHEAD
#define COPIED_TO (READ_AT + MODEL_DATA_SLOT)
#else
#define COPIED_TO READ_AT
#endif

/* What the first source needs that is opened; net_free gives it back. */
static int data_memory(net *m)
{
    int code;
    HERE;
    if (!m->copies) {
        cudaStream_t stream;
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        m->copies = stream;
    }
    for (int i = 0; i < 2 && !m->event[i]; i++) {
        cudaEvent_t event;
        CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
        m->event[i] = event;
    }
    if (!m->ring) {
        void *ring;
        CHECK(cudaMallocHost(&ring, NET_HOST_BYTES));
        m->ring = (unsigned char *)ring;
    }
    return NET_OK;
}

static void data_free(net *m)
{
    if (m->copies)
        (void)cudaStreamDestroy(COPIES);
    for (int i = 0; i < 2; i++)
        if (m->event[i])
            (void)cudaEventDestroy((cudaEvent_t)m->event[i]);
    if (m->ring)
        (void)cudaFreeHost(m->ring);
    m->ring = NULL;
    m->copies = m->event[0] = m->event[1] = NULL;
}

/* What is on its way is not read any more, and nothing is copied from the ring. */
static void slot_recall(net *m)
{
    if (m->sent)
        (void)cudaStreamSynchronize(COPIES);
    m->sent = 0;
}

/* Sends the next slot to the device. */
static int slot_send(net *m, int which)
{
    int code;
    gp_data_slot slot;
    if ((code = slot_next(m, which, &slot)) != NET_OK)
        return code;
    m->sent = 1;
    CHECK(cudaStreamWaitEvent(COPIES, WAS_READ, 0));
    CHECK(cudaMemcpyAsync(COPIED_TO, slot.at, MODEL_DATA_SLOT, cudaMemcpyHostToDevice, COPIES));
    CHECK(cudaEventRecord(HAS_COME, COPIES));
    return NET_OK;
}

/* From here on the stream finds the next samples where they are read. */
static int slot_take(net *m, int which)
{
    int code;
    if (!m->sent && (code = slot_send(m, which)) != NET_OK)
        return code;
    CHECK(cudaStreamWaitEvent(STREAM, HAS_COME, 0));
#if MODEL_DATA_AHEAD
    CHECK(cudaMemcpyAsync(READ_AT, COPIED_TO, MODEL_DATA_SLOT, cudaMemcpyDeviceToDevice, STREAM));
    CHECK(cudaEventRecord(WAS_READ, STREAM));
#endif
    return NET_OK;
}

/* All that reads them is on the stream. Their slot of the ring is the workers' again when it has
 * been copied, and one that they have filled meanwhile follows it. */
static int slot_give(net *m, int which)
{
    int code;
#if !MODEL_DATA_AHEAD
    CHECK(cudaEventRecord(WAS_READ, STREAM));
#endif
    CHECK(cudaEventSynchronize(HAS_COME));
    slot_done(m);
    m->sent = 0;
#if MODEL_DATA_AHEAD
    if (gp_data_is_ready(LOADER))
        return slot_send(m, which);
#else
    (void)which;
#endif
    return NET_OK;
}
