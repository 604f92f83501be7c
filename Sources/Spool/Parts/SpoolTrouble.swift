/// What cannot be read or removed, and why.
struct SpoolTrouble {
    /// What is refused as long as its permissions stay as they are.
    var complaints: [FileName: SpoolComplaint] = [:]
    /// What was refused and logged.
    var refusals: Set<FileName> = []
    /// Files under names that say nothing.
    var passedOver = PassedOver()
    /// What could not be done, and is done again later.
    var secondTries = SecondTries()
}
