// An identity provider and its login page, for the tests: `node provider.mjs settings.json`, until it is ended.
//
// settings: { port, jwks, acr: ["lowest", ...], clients: [...], resource }
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

import Provider from "oidc-provider";

const settings = JSON.parse(readFileSync(process.argv[2], "utf-8"));
const issuer = `http://127.0.0.1:${settings.port}`;

const provider = new Provider(issuer, {
  acrValues: settings.acr,
  claims: { acr: null, amr: null, auth_time: null, iss: null, openid: ["sub"], sid: null },
  clients: settings.clients,
  cookies: { keys: ["only for the tests"] },
  features: {
    backchannelLogout: { enabled: true },
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: () => ({
        scope: "orders:read",
        accessTokenFormat: "jwt",
        accessTokenTTL: 60,
        jwt: { sign: { alg: "ES256" } },
      }),
    },
  },
  // Left to itself it tells nobody on a loopback address of a logout.
  fetch: (url, { dispatcher: _, ...options }) => fetch(url, options),
  findAccount: (_ctx, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
  interactions: { url: (_ctx, interaction) => `/interaction/${interaction.uid}` },
  jwks: settings.jwks,
  // Whoever signs in consents to nothing but being told apart.
  loadExistingGrant: async (ctx) => {
    const grant = new ctx.oidc.provider.Grant({ clientId: ctx.oidc.client.clientId, accountId: ctx.oidc.session.accountId });
    grant.addOIDCScope("openid");
    await grant.save();
    return grant;
  },
  pkce: { required: () => false },
});

const page = `<form method="post"><input name="name"><input name="factors"><button>Sign in</button></form>`;

async function form(request) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  return new URLSearchParams(Buffer.concat(pieces).toString());
}

async function interact(request, response) {
  await provider.interactionDetails(request, response);
  if (request.method !== "POST") {
    response.setHeader("Content-Type", "text/html");
    response.end(page);
    return;
  }
  const filled = await form(request);
  const factors = filled.get("factors").split(" ");
  const login = {
    accountId: filled.get("name"),
    acr: settings.acr[Math.min(factors.length, settings.acr.length) - 1],
    amr: factors,
  };
  await provider.interactionFinished(request, response, { login }, { mergeWithLastSubmission: false });
}

const serve = provider.callback();
createServer((request, response) => {
  if (!request.url.startsWith("/interaction/")) {
    serve(request, response);
    return;
  }
  interact(request, response).catch(() => {
    response.statusCode = 400;
    response.end();
  });
}).listen(settings.port, "127.0.0.1", () => console.log("ready"));
