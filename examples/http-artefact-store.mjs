/*
 * Keeps stored KV in an object store behind plain HTTP: PUT, GET and DELETE of {ARTEFACT_STORE_URL}/{name}. That is
 * what S3-compatible stores offer behind a signing proxy, and what nginx with its DAV module, SeaweedFS and many others
 * offer by themselves.
 *
 *   ARTEFACT_STORE_URL=http://host:8333/kv CTX_KV_STORE_MODULE=examples/http-artefact-store.mjs node dist/src/main.js
 *
 * docs/artefact-store.md explains the interface.
 */
export const createArtefactStore = () => {
  const root = process.env.ARTEFACT_STORE_URL
  if (root === undefined) throw new Error('ARTEFACT_STORE_URL names no object store')
  const urlOf = (name) => `${root}/${encodeURIComponent(name)}`

  /** Any answer but the expected ones is a fault. The rest of its body is cancelled, which frees its connection. */
  const send = async (name, request, expected) => {
    const answer = await fetch(urlOf(name), request)
    if (expected.includes(answer.status)) return answer
    await answer.body?.cancel()
    throw new Error(`the object store answered ${answer.status} to ${request.method}`)
  }

  /** A request that is given up does not stop reading its body by itself. */
  async function* until(signal, content) {
    for await (const piece of content) {
      if (signal.aborted) return
      yield piece
    }
  }

  return {
    async save(name, content, { bytes, signal }) {
      // With its length the store notices a body that breaks off, and keeps none of it.
      const headers = { 'content-length': String(bytes), 'content-type': 'application/octet-stream' }
      const request = { method: 'PUT', headers, body: until(signal, content), duplex: 'half', signal }
      const answer = await send(name, request, [200, 201, 204])
      await answer.body?.cancel()
    },

    async load(name, { signal }) {
      const answer = await send(name, { method: 'GET', signal }, [200, 404])
      if (answer.status === 200) return answer.body ?? undefined
      await answer.body?.cancel()
      return undefined
    },

    async remove(name, { signal }) {
      const answer = await send(name, { method: 'DELETE', signal }, [200, 202, 204, 404])
      await answer.body?.cancel()
    },
  }
}
