/// `{"percent": 10, "by": "host"}`: a share of the machines, always the same ones.
struct Rollout {
    /// From 0 to 100.
    let percent: Double

    init(reading node: DocumentNode) throws(ContainerError) {
        let members = try node.members(known: ["percent", "by"])
        percent = try members.required("percent").number(0...100)
        if let by = members.optional("by"), try by.text() != "host" { throw by.error("must be \"host\"") }
    }
}
