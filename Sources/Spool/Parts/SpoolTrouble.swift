internal import EventLoops

/// What cannot be read or removed, and why.
struct SpoolTrouble {
    /// What is refused as long as its permissions stay as they are.
    var complaints = Complaints()
    /// The directory in the drop box that was told, whatever others there are; and whether it was there when that was listed.
    var nested: (path: FileName, wasSeen: Bool)?
    /// Directories with append files for which there was no room, by the holders of those files; none while they are listed again.
    var crowded: [Holder: [FileName: SpoolDirectory]] = [:]
    var refusals: Set<FileName> = []
    var passedOver = PassedOver()
    var secondTries = SecondTries()
    /// When the log last reported a file that was written anew and is sent again.
    var lastRepeat: BootInstant?
}
