internal import Model

/// What commands have set about consent.
struct ConsentSwitch {
    /// The answers by app and purpose.
    var states = ConsentStates()
}
