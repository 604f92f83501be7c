internal import EventLoops

/// When the kernel's changes are read: at once, or, while lines drip, once for each commit.
extension SpoolReader {
    /// Has the kernel's changes wake the loop.
    func listen(to kernel: Int32) throws(SystemError) {
        try loop.watch(kernel, for: .readable) { _ in
            self.assumeIsolated {
                $0.readChanges(within: SpoolReader.sliceTime)
                // The pump comes next, and need not look again.
                $0.watching.attention = .heard
                $0.wake()
            }
        }
        watching.attention = .listening
    }

    /// Reads changes, unless they were read just now or are left to gather.
    func hear() {
        switch watching.attention {
        case .listening: readChanges(within: SpoolReader.changesTime)
        case .heard: watching.attention = .listening
        case .resting(let end): if now >= end { readChanges(within: SpoolReader.changesTime) }
        }
    }

    /// Lets changes gather: what is written meanwhile would wait for the next commit in any case.
    func rest(until end: BootInstant) {
        if case .resting(let known) = watching.attention, known == end { return }
        schedule(at: end) { self.wake() }
        guard let kernel = watching.inotify?.raw else { return }
        // A kernel that refuses goes on waking the loop, which costs time and nothing else.
        if case .resting = watching.attention {} else if (try? loop.watch(kernel, for: []) { _ in }) == nil { return }
        watching.attention = .resting(until: end)
    }

    /// Whether changes were left to gather, until now.
    var isRested: Bool {
        if case .resting(let end) = watching.attention { now >= end } else { false }
    }

    /// Ends a rest in which nothing came. If the kernel refuses, the next look comes after another rest.
    func endRest() {
        guard let kernel = watching.inotify?.raw, (try? listen(to: kernel)) == nil else { return }
        rest(until: now + options.linger)
    }
}
