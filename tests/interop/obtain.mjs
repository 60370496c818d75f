// Obtains a token with npm's `oauth4webapi`: discovery, then a token exchange with `private_key_jwt`.
//
//     node obtain.mjs < request
//
// The request is a JSON object: issuer, client_id, client_key (a private JWK), parameters (the form to send) and, if wanted, the
// typ of the client assertion. Prints the metadata that was discovered and the answer of the token endpoint, or the OAuth error.

import { json } from 'node:stream/consumers'
import * as oauth from 'oauth4webapi'

const request = await json(process.stdin)
const issuer = new URL(request.issuer)
// On loopback the issuer speaks http.
const insecure = { [oauth.allowInsecureRequests]: true }

const discovery = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...insecure })
const metadata = await oauth.processDiscoveryResponse(issuer, discovery)

const { kid, ...jwk } = request.client_key
const algorithm = { name: 'ECDSA', namedCurve: 'P-256' }
const key = await crypto.subtle.importKey('jwk', jwk, algorithm, false, ['sign'])
// The audience is the issuer already; the type is what RFC 10070 gives the assertion.
const typed = (header) => Object.assign(header, { typ: request.typ })
const options = request.typ === undefined ? {} : { [oauth.modifyAssertion]: typed }
const authentication = oauth.PrivateKeyJwt({ key, kid }, options)

const client = { client_id: request.client_id }
const grant = 'urn:ietf:params:oauth:grant-type:token-exchange'
const response = await oauth.genericTokenEndpointRequest(
  metadata,
  client,
  authentication,
  grant,
  request.parameters,
  insecure,
)
try {
  const answer = await oauth.processGenericTokenEndpointResponse(metadata, client, response)
  console.log(JSON.stringify({ metadata, answer }))
} catch (error) {
  console.log(JSON.stringify({ metadata, error: error.error, status: error.status }))
}
