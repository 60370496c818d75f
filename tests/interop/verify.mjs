// Verifies tokens with npm's `jose` against the keys that the issuer publishes.
//
//     node verify.mjs ISSUER AUDIENCE < tokens, one a line
//
// Prints a JSON array with an entry for each token: its header and claims, or the code that jose refuses it with.

import { text } from 'node:stream/consumers'
import { createRemoteJWKSet, jwtVerify } from 'jose'

const [issuer, audience] = process.argv.slice(2)
const keys = createRemoteJWKSet(new URL(`${issuer}/.well-known/jwks.json`))
const requiredClaims = ['sub', 'client_id', 'iat', 'exp', 'jti', 'acr', 'act']

async function verified(token) {
  try {
    const { protectedHeader, payload } = await jwtVerify(token, keys, {
      issuer,
      audience,
      typ: 'at+jwt',
      algorithms: ['ES256'],
      requiredClaims,
      maxTokenAge: 60,
    })
    return { header: protectedHeader, claims: payload }
  } catch (error) {
    return { refused: error.code, claim: error.claim }
  }
}

const tokens = (await text(process.stdin)).trim().split('\n')
console.log(JSON.stringify(await Promise.all(tokens.map(verified))))
