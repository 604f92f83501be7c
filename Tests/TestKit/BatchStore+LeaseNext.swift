public import Model

extension BatchStore {
    /// The lane's next batch; nil when there is none.
    public func leaseNext(_ request: LeaseRequest) async throws -> Batch? {
        let leased = await leaseNext(request, count: 1)
        if let failure = leased.failure { throw failure }
        return leased.batches.first
    }
}
