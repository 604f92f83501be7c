import Model

@testable import Journal

extension JournalOptions {
    /// All of them at once.
    init(
        directory: String?, units: [String], priority: Int, since: JournalStart, fields: [String],
        maxEventSize: Int
    ) {
        self.init(maxEventSize: maxEventSize)
        self.directory = directory
        self.units = units
        self.priority = priority
        self.since = since
        self.fields = fields
    }
}
