internal import Glibc
internal import Configuration
internal import EventLoops
internal import Journal
internal import Model
internal import Spool
internal import TextFormats

extension Settings {
    /// The options of the spool's reader.
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
        options.appsElsewhere = Set(
            apps.filter { $0.value.read != nil || $0.value.journal.read == true }.keys)
        options.maxEventSize = spool.maxEventSize
        options.maxOpenFiles = spool.maxOpenFiles
        options.pollInterval = spool.pollInterval
        // The intake asks for commits by the packed size of chunks. This bounds what is read before it asks;
        // unpacked, it must fit a small queue.
        options.commitBytes = min(options.commitBytes, max(4096, queue.maxSize / 8))
        options.linger = linger
        options.patience = patience
        return options
    }

    /// The options of the readers of files that are read in place, one for each directory.
    var placeOptions: [SpoolOptions] {
        let resolved = resolved
        // Made once: its set of all apps, for each of 200 apps, took 1.6 MB.
        let common = spoolOptions
        return places.map { place in
            var options = common
            options.place = place
            options.own = [spool.directory, agent.stateDirectory]
            options.places = resolved
            options.directory = place.root
            options.since = apps[place.app]?.since ?? .beginning
            // Files that are read in place belong to somebody else and are never removed.
            options.afterRead = .keep
            options.format = apps[place.app]?.format
            options.encoding = apps[place.app]?.encoding
            options.joinsText = apps[place.app]?.text == .blocks
            options.recordStart = apps[place.app]?.textFormat.format?.recordStart
            return options
        }
    }

    /// The directories and patterns of `read`, by app. An invalid pattern is reported by `readingMistake`.
    var places: [ReadPlace] {
        apps.sorted { $0.key < $1.key }.flatMap { app, section in
            ReadPlace.of(
                app: app, section.read ?? [], excluding: section.exclude ?? [],
                following: section.follow ?? [])
                ?? []
        }
    }

    /// Each place with the path that links lead to. Only links that no user can change are followed, so that
    /// no user can keep the agent from starting.
    private var resolved: [ReadPlace: ReadPlace] {
        Dictionary(uniqueKeysWithValues: places.map { ($0, $0.resolved) })
    }

    /// The options of each journal, by app.
    var journals: [(app: String, options: JournalOptions)] {
        apps.sorted { $0.key < $1.key }.filter { $0.value.journal.read == true }.map { app, section in
            var options = JournalOptions(maxEventSize: spool.maxEventSize)
            options.directory = section.journal.directory
            options.units = section.journal.units ?? []
            options.priority =
                JournalPriority.allCases.firstIndex(of: section.journal.priority ?? .debug) ?? 7
            options.since = section.journal.since ?? .now
            options.fields = section.journal.fields ?? []
            // Entries that a commit of a small queue has no room for must be read from the journal again:
            // keep pieces small.
            options.pieceBytes = min(options.pieceBytes, max(4096, queue.maxSize / 16))
            return (app, options)
        }
    }

    /// Why journals and directories cannot be read now. A start continues without them.
    var readingProblems: [(setting: String, message: String)] {
        journals.compactMap { app, options in
            JournalReader.problem(options).map { ("apps.\(app).journal", "cannot be read: \($0.message)") }
        } + places.compactMap { place in place.problem.map { ("apps.\(place.app).read", $0) } }
    }

    /// The first mistake in what is read, which the start refuses: the setting and the message.
    var readingMistake: (setting: String, message: String)? {
        if let mistake = readingMistake(at: resolved) { return mistake }
        // A file system that may never answer is asked on another thread, and again by the start.
        guard DistantMount.onTheWay(of: spool.directory) != nil else { return foreignSpool }
        return SilentFiles.answer(about: spool.directory) { self.foreignSpool } ?? nil
    }

    /// The first mistake that the text alone shows, whatever machine it is for.
    var readingMistakeInText: (setting: String, message: String)? {
        readingMistake(at: Dictionary(uniqueKeysWithValues: places.map { ($0, $0) }))
    }

    /// The first mistake in what is read.
    ///
    /// - Parameter resolved: where the links of this machine lead from each place.
    private func readingMistake(at resolved: [ReadPlace: ReadPlace]) -> (setting: String, message: String)? {
        let own = [spool.directory, agent.stateDirectory]
        for (app, section) in apps.sorted(by: { $0.key < $1.key }) {
            if let key = section.journal.uselessSetting {
                return ("apps.\(app).journal.\(key)", "has no effect without journal = true")
            }
            if section.text == .blocks, section.read == nil || section.format != nil {
                return (
                    "apps.\(app).text",
                    "blocks is for files that are read in place, without a container's format"
                )
            }
            if let mistake = section.textFormat.mistake(with: section) {
                return ("apps.\(app).\(mistake.key)", mistake.message)
            }
            guard let patterns = section.read else {
                if section.exclude != nil { return ("apps.\(app).exclude", "has no effect without read") }
                if section.follow != nil { return ("apps.\(app).follow", "has no effect without read") }
                if section.since != nil { return ("apps.\(app).since", "has no effect without read") }
                if section.encoding != nil {
                    return ("apps.\(app).encoding", "is for files that are read in place: set read")
                }
                if section.filePath != nil { return ("apps.\(app).file_path", "has no effect without read") }
                // In the spool a block can end between two lines of a record, which would then be two
                // records.
                if section.format != nil {
                    return ("apps.\(app).format", "is for files that are read in place: set read")
                }
                continue
            }
            if let encoding = section.encoding, let format = section.format {
                return (
                    "apps.\(app).encoding",
                    "\(encoding.rawValue) does not go with format = \"\(format.rawValue)\", which is UTF-8"
                )
            }
            for pattern in patterns {
                if let mistake = ReadPlace.mistake(pattern) { return ("apps.\(app).read", mistake) }
            }
            for pattern in section.exclude ?? [] {
                if let mistake = ReadPlace.mistake(pattern, isExclusion: true) {
                    return ("apps.\(app).exclude", mistake)
                }
            }
            let places =
                ReadPlace.of(
                    app: app, patterns, excluding: section.exclude ?? [], following: section.follow ?? [])
                ?? []
            for place in places {
                if let pattern = place.neverRead {
                    return (
                        "apps.\(app).read",
                        "names files by \(pattern) that are not read in place: of compressed files those of "
                            + "gzip and Zstandard are"
                    )
                }
                if let conflict = place.conflict(at: resolved[place] ?? place, own: own, places: resolved) {
                    return ("apps.\(app).read", conflict)
                }
            }
        }
        return nil
    }

    /// The mistake that a directory of log files is configured as the spool: its files would be read and then
    /// deleted. Asks the spool's file system.
    var foreignSpool: (setting: String, message: String)? {
        guard origins["spool.after_read"] == nil, access("\(spool.directory)/.spoolship", F_OK) != 0 else {
            return nil
        }
        let found = SpoolBacklog.measure(in: spool.directory).files
        guard found > 0 else { return nil }
        return (
            "spool.directory",
            "has \(found) \(found == 1 ? "file" : "files") in it and no .spoolship directory, as a spool "
                + "has: they would be read and removed. To read logs in place, write [apps.NAME] read = "
                + "[\"\(spool.directory)/*.log\"]; if it is the spool, mkdir \(spool.directory)/.spoolship, "
                + "or write spool.after_read = \"delete\""
        )
    }

    /// How long lines that arrive slowly are gathered for one commit: a fifteenth of the shortest wait before
    /// sending, from 5 to 200 ms.
    ///
    /// Each commit writes about ten pages of the queue, however few its lines. Gathering delays nothing that
    /// somebody waits for, and a crash loses no line, because the lines are in their files. Only a power cut
    /// may lose lines that their app has not synced, and this window grows by the linger. It depends on the
    /// settings of the start: a reload does not change it.
    var linger: Duration {
        let waits = dispatches.map { min($0.criticalDelay, $0.interval.duration ?? $0.criticalDelay) }
        return min(max((waits.min() ?? .zero) / 15, .milliseconds(5)), .milliseconds(200))
    }

    /// How long lines are gathered while no critical event is among them: a tenth of the shortest interval,
    /// up to 600 ms.
    ///
    /// From `batch_events.full` on, the events of a commit are a request, too. Where a single event is one,
    /// or critical events go at once, nothing is gathered for longer than `linger`.
    var patience: Duration {
        let linger = linger
        guard dispatches.allSatisfy({ $0.batchEvents != 1 && $0.criticalDelay > .zero }) else {
            return linger
        }
        let intervals = dispatches.compactMap(\.interval.duration)
        return max(linger, min((intervals.min() ?? .zero) / 10, .milliseconds(600)))
    }

    /// What is in force for each destination; for none the general settings.
    private var dispatches: [DispatchSettings] {
        destinations.isEmpty ? [dispatch] : destinations.map { dispatch(for: $0) }
    }

    /// The most unread bytes before waiting becomes evicting; 0 for no bound.
    var unreadBound: Int { spool.whenFull == .wait ? spool.maxUnread : 0 }
}
