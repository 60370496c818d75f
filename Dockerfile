# The service with everything it needs and nothing that built it.

FROM python:3.12-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
COPY requirements.lock .ci/build.lock ./
RUN python -m venv /opt/build && /opt/build/bin/pip install --require-hashes -r build.lock
RUN python -m venv /opt/venv && /opt/venv/bin/pip install --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY issuer issuer
COPY keys keys
COPY verifier verifier
RUN /opt/build/bin/hatchling build --target wheel --directory dist \
    && /opt/venv/bin/pip install --no-index --no-deps dist/*.whl \
    && /opt/venv/bin/pip check

FROM python:3.12-slim-bookworm
# A fixed number, so that whoever mounts the data folder knows whom to give it to.
RUN groupadd --gid 10001 service \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin service \
    && install -d -o 10001 -g 10001 -m 0700 /var/lib/customer-context
COPY --from=build /opt/venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    CUSTOMER_CONTEXT_CONFIG=/etc/customer-context/customer-context.toml
USER 10001:10001
VOLUME /var/lib/customer-context
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health/live', timeout=2)"]
ENTRYPOINT ["customer-context"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8000"]
