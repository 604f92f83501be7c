/// The encryption of one connection, without its socket.
///
/// The server knows no TLS: who wants it passes in what makes a cipher for each connection. A cipher is used
/// on the server's loop only.
package protocol ConnectionCipher: AnyObject {
    /// Accepts bytes of the network, and returns what they contain. After `isEnded` no bytes follow.
    func decrypt(_ bytes: UnsafeRawBufferPointer) -> (bytes: [UInt8], isEnded: Bool)
    /// Returns bytes for the network that contain these.
    func encrypt(_ bytes: [UInt8]) -> [UInt8]
    /// Returns bytes for the network that the encryption itself has to send: handshakes and alerts.
    func takeOutput() -> [UInt8]
    /// Returns the bytes for the network which say that nothing more follows.
    func end() -> [UInt8]
}
