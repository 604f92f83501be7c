internal import EventLoops

/// What cannot be read or removed, and why.
struct SpoolTrouble {
    /// What is refused as long as its permissions stay as they are.
    var complaints = HeldPaths<SpoolComplaint>()
    /// The directory in the drop box that was told, whatever others there are; and whether it was there when that was listed.
    var nested: (path: FileName, wasSeen: Bool)?
    /// Directories with append files for which there was no room, by the holders of those files; none while they are listed again.
    var crowded: [Holder: [FileName: SpoolDirectory]] = [:]
    /// Files that are never opened.
    var refusals = HeldPaths<SpoolRefusal>()
    /// Files whose names are of no kind that is read: an app that writes `events.txt` waits in vain.
    var passedOver = HeldPaths<Void>()
    /// Files in which zeros were reported.
    var withZeros: Set<FileName> = []
    var secondTries = SecondTries()
    /// When the log last reported a file that was written anew and is sent again.
    var lastRepeat: BootInstant?
}
