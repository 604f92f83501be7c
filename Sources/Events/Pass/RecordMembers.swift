internal import Model
internal import TextFormats

/// Where an app's records may have their name, time and severity, as the scanner finds them: the app's
/// settings, prepared once. A value: it is made again when the settings or the hidden members change.
struct RecordMembers {
    /// Number of the `HiddenPaths` that the candidates were built from.
    private(set) var hiding: Int?
    /// `"name":"…"` with the default name of records.
    private(set) var defaultName: [UInt8] = []
    /// Members that may hold a record's name, time and severity.
    private(set) var names = Candidates.none
    private(set) var times = Candidates.none
    private(set) var levels = Candidates.none
    /// Whether records get a member `severity`. Receivers know the usual members themselves; they cannot know
    /// configured members and scales, or what a format has parsed.
    private(set) var addsSeverity = false
    /// Scanner bit of `severity`: a record that has it keeps it.
    private(set) var severityBit: UInt64 = 0
    /// Slot of `version`, by which GELF is recognised; nil if tags hide it.
    private(set) var versionSlot: Int?
    /// Slot of the member with the file's path; nil if records do not get it.
    private(set) var filePathSlot: Int?

    /// Nothing is looked for.
    init() {}

    /// What tags hide is left out of the candidates.
    init(_ settings: AppOptions, _ watched: WatchedNames, _ hidden: HiddenPaths?) {
        hiding = hidden?.number
        defaultName = Array("\"name\":".utf8) + JSONText.quoted(settings.defaultEventName)
        names = Candidates(settings.nameMembers, watched, hiding: hidden)
        times = Candidates(settings.timeMembers, watched, hiding: hidden)
        levels = Candidates(settings.levelMembers, watched, hiding: hidden)
        addsSeverity =
            settings.levelMembers != Severity.usualMembers || settings.levelScale != .auto
            || settings.textFormat?.parses == true
        severityBit = Candidates(["severity"], watched).mask
        filePathSlot = settings.addsFilePath ? watched.slot(of: AppOptions.filePath) : nil
        versionSlot = Candidates(["version"], watched, hiding: hidden).paths.first?.slot
    }
}
