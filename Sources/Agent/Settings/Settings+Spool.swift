internal import Configuration
internal import Spool

extension Settings {
    /// The settings of the spool's reader.
    var spoolOptions: SpoolOptions {
        var options = SpoolOptions(directory: spool.directory)
        options.afterRead =
            switch spool.afterRead {
            case .delete: .delete
            case .keep: .keep
            case .archive:
                .archive(
                    directory: spool.archiveDirectory ?? "\(spool.directory)/.spoolship/archive",
                    retention: spool.archiveMaxAge == .zero ? nil : spool.archiveMaxAge,
                    mostBytes: spool.archiveMaxSize == 0 ? nil : Int64(spool.archiveMaxSize))
            }
        options.maxEventSize = spool.maxEventSize
        options.maxOpenFiles = spool.maxOpenFiles
        options.pollInterval = spool.pollInterval
        // The intake asks for commits by what packed chunks take; this bounds what the spool takes unasked. Unpacked, it
        // must fit a small queue.
        options.commitBytes = min(options.commitBytes, max(4096, queue.maxSize / 8))
        options.linger = linger
        return options
    }

    /// How long a steady drip of lines is gathered for one commit: a fifteenth of the shortest wait before sending, from 5 to
    /// 200 ms.
    ///
    /// Nobody waits for it, and no line depends on it: they are in their file. Only a power cut may take those that their app has
    /// not synced, so much later than it might have. Each commit writes about ten pages of the queue, however few its lines.
    /// By the settings of the start: a reload does not change it.
    var linger: Duration {
        let all = destinations.isEmpty ? [dispatch] : destinations.map { dispatch(for: $0) }
        let waits = all.map { settings in
            if case .every(let interval) = settings.interval {
                min(settings.criticalDelay, interval)
            } else {
                settings.criticalDelay
            }
        }
        return min(max((waits.min() ?? .zero) / 15, .milliseconds(5)), .milliseconds(200))
    }

    /// The most unread bytes, for which waiting becomes evicting; 0 for no bound.
    var unreadBound: Int { spool.whenFull == .wait ? spool.maxUnread : 0 }
}
