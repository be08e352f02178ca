/** The pieces of a body so far, last one first: a value, so that adding a piece copies nothing. */
export interface CollectedBody {
  readonly bytes: number
  readonly pieces: number
  readonly last: { readonly piece: Buffer; readonly before: CollectedBody } | undefined
}

export const emptyBody: CollectedBody = { bytes: 0, pieces: 0, last: undefined }

/** The body with one more piece at its end. */
export const appendPiece = (body: CollectedBody, piece: Buffer): CollectedBody => ({
  bytes: body.bytes + piece.length,
  pieces: body.pieces + 1,
  last: { piece, before: body },
})

/** The body in one piece; without a copy where it came so. */
export const joinBody = (body: CollectedBody): Buffer => {
  const pieces: Buffer[] = []
  for (let at = body.last; at !== undefined; at = at.before.last) pieces.push(at.piece)
  const [only] = pieces
  return pieces.length === 1 && only !== undefined ? only : Buffer.concat(pieces.reverse(), body.bytes)
}
