internal import Glibc
internal import Configuration
internal import EventLoops
internal import Journal
internal import Model
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
        options.appsElsewhere = Set(apps.filter { $0.value.read != nil || $0.value.journal == true }.keys)
        options.maxEventSize = spool.maxEventSize
        options.maxOpenFiles = spool.maxOpenFiles
        options.pollInterval = spool.pollInterval
        // The intake asks for commits by what packed chunks take; this bounds what the spool takes unasked. Unpacked, it
        // must fit a small queue.
        options.commitBytes = min(options.commitBytes, max(4096, queue.maxSize / 8))
        options.linger = linger
        return options
    }

    /// How files are read that are elsewhere.
    var placeOptions: [SpoolOptions] {
        let resolved = resolved
        return places.map { place in
            var options = spoolOptions
            options.place = place
            (options.own, options.places) = ([spool.directory, agent.stateDirectory], resolved)
            options.directory = place.root
            options.afterRead = .keep
            options.format = apps[place.app]?.format
            options.joinsText = apps[place.app]?.text == .blocks
            return options
        }
    }

    /// What `read` names, by app. What is no pattern is a mistake of the configuration.
    var places: [ReadPlace] {
        apps.sorted { $0.key < $1.key }.flatMap { ReadPlace.of(app: $0.key, $0.value.read ?? []) ?? [] }
    }

    /// The places where links lead that no user has made: no user's link keeps the agent from starting.
    private var resolved: [ReadPlace: ReadPlace] { Dictionary(uniqueKeysWithValues: places.map { ($0, $0.resolved) }) }

    var journals: [(app: String, options: JournalOptions)] {
        apps.sorted { $0.key < $1.key }.filter { $0.value.journal == true }.map { app, section in
            var options = JournalOptions(maxEventSize: spool.maxEventSize)
            options.directory = section.journalDirectory
            options.units = section.journalUnits ?? []
            options.priority = JournalPriority.allCases.firstIndex(of: section.journalPriority ?? .debug) ?? 7
            options.since = section.journalSince ?? .now
            options.fields = section.journalFields ?? []
            // What a commit of a small queue has no room for is read from the journal again.
            options.pieceBytes = min(options.pieceBytes, max(4096, queue.maxSize / 16))
            return (app, options)
        }
    }

    /// What keeps journals and places from being read; a start goes on without them.
    var readingProblems: [(setting: String, message: String)] {
        journals.compactMap { app, options in
            JournalReader.problem(options).map { ("apps.\(app).journal", "cannot be read: \($0.message)") }
        } + places.compactMap { place in place.problem.map { ("apps.\(place.app).read", $0) } }
    }

    /// A mistake in what is read, that the start refuses: which setting, and what is wrong with it.
    var readingMistake: (setting: String, message: String)? {
        let (own, resolved) = ([spool.directory, agent.stateDirectory], resolved)
        for (app, section) in apps.sorted(by: { $0.key < $1.key }) {
            if section.journal != true, let key = section.journalSetting {
                return ("apps.\(app).\(key)", "has no effect without journal = true")
            }
            if section.text == .blocks, section.read == nil || section.format != nil {
                return ("apps.\(app).text", "blocks is for files that are read in place, without a container's format")
            }
            guard let patterns = section.read else {
                // In the spool a record could be cut between two of its lines.
                if section.format != nil {
                    return ("apps.\(app).format", "is for files that are read in place: set read")
                }
                continue
            }
            guard let places = ReadPlace.of(app: app, patterns) else {
                return ("apps.\(app).read", "must be absolute paths of files, with * in one or more parts")
            }
            if let pattern = patterns.first(where: { $0.holds("**") }) {
                return ("apps.\(app).read", "\(pattern): * is for one part of a path: name each level (*/*.log)")
            }
            for place in places {
                if let pattern = place.neverRead {
                    return (
                        "apps.\(app).read",
                        "names compressed files by \(pattern): they are not read in place; read them before rotation compresses them"
                            + " (delaycompress), or once by spoolship run --once"
                    )
                }
                if let conflict = place.conflict(at: resolved[place] ?? place, own: own, places: resolved) {
                    return ("apps.\(app).read", conflict)
                }
            }
        }
        guard origins["spool.after_read"] == nil, access("\(spool.directory)/.spoolship", F_OK) != 0 else { return nil }
        let found = SpoolBacklog.measure(in: spool.directory).files
        guard found > 0 else { return nil }
        return (
            "spool.directory",
            "has \(found) files in it and no .spoolship directory, as a spool has: they would be read and removed. To read logs in place,"
                + " write [apps.NAME] read = [\"\(spool.directory)/*.log\"]; if it is the spool, mkdir \(spool.directory)/.spoolship,"
                + " or write spool.after_read = \"delete\""
        )
    }

    /// How long a steady drip of lines is gathered for one commit: a fifteenth of the shortest wait before sending, from 5 to
    /// 200 ms.
    ///
    /// Nobody waits for it, and no line depends on it: they are in their file. Only a power cut may take those that their app has
    /// not synced, so much later than it might have. Each commit writes about ten pages of the queue, however few its lines.
    /// By the settings of the start: a reload does not change it.
    var linger: Duration {
        let all = destinations.isEmpty ? [dispatch] : destinations.map { dispatch(for: $0) }
        let waits = all.map { min($0.criticalDelay, $0.interval.duration ?? $0.criticalDelay) }
        return min(max((waits.min() ?? .zero) / 15, .milliseconds(5)), .milliseconds(200))
    }

    /// The most unread bytes, for which waiting becomes evicting; 0 for no bound.
    var unreadBound: Int { spool.whenFull == .wait ? spool.maxUnread : 0 }
}
