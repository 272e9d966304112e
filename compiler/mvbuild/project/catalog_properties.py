"""the `catalog:` of a target, or `properties:` of a source -> properties in it that look misspelled.

mvbuild passes unknown properties on to PyIceberg and Spark. A property that is almost a known one is refused: it would be ignored silently,
and the catalog would be another one than intended.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from mvbuild.diagnostics import Diagnostic, error
from mvbuild.project.yaml_spans import MapNode, Node

_KNOWN = frozenset(
    """
    name type uri warehouse credential token scope audience resource prefix auth ssl echo init_catalog_tables pool_pre_ping
    oauth2-server-uri py-catalog-impl py-io-impl catalog-impl io-impl metrics-reporter-impl location owner namespace-separator
    rest-page-size snapshot-loading-mode scan-planning-mode view-endpoints-supported vended-credentials cache-enabled
    lock-check-max-wait-time lock-check-min-wait-time lock-check-retries lock-impl lock.table clients botocore_session
    cache.expiration-interval-ms cache.case-sensitive default-namespace table-default table-override jdbc.schema-version
    rest.signing-name rest.signing-region rest.sigv4-enabled rest.sigv4.max-retries
    client.access-key-id client.secret-access-key client.session-token client.region client.profile-name client.role-arn
    client.role-session-name client.credentials-provider client.factory client.assume-role.arn client.assume-role.region
    s3.access-key-id s3.secret-access-key s3.session-token s3.region s3.resolve-region s3.endpoint s3.profile-name s3.proxy-uri
    s3.role-arn s3.role-session-name s3.connect-timeout s3.request-timeout s3.force-virtual-addressing s3.anonymous s3.signer
    s3.signer.uri s3.signer.endpoint s3.server-side-encryption s3.sse-kms-key-id s3.retry-strategy-impl s3.path-style-access
    s3.remote-signing-enabled s3.sse.type s3.sse.key s3.acl
    glue.id glue.region glue.endpoint glue.access-key-id glue.secret-access-key glue.session-token glue.profile-name
    glue.max-retries glue.retry-mode glue.skip-archive glue.skip-name-validation
    hive.hive2-compatible hive.kerberos-authentication hive.kerberos-service-name
    hdfs.host hdfs.port hdfs.user hdfs.kerberos_ticket
    adls.account-host adls.account-key adls.account-name adls.anon adls.blob-storage-authority adls.blob-storage-scheme
    adls.client-id adls.client-secret adls.connection-string adls.credential adls.dfs-storage-authority adls.dfs-storage-scheme
    adls.sas-token adls.tenant-id adls.token
    gcs.access gcs.cache-timeout gcs.consistency gcs.default-bucket-location gcs.oauth2.token gcs.oauth2.token-expires-at
    gcs.project-id gcs.requester-pays gcs.service.host gcs.session-kwargs gcs.version-aware hf.endpoint hf.token
    """.split()
)
"""Properties of PyIceberg 0.11 and of Iceberg's Java catalogs."""
_FREE = tuple(
    "header. auth. jdbc. hadoop. spark. s3.access-points. s3.write.tags. s3.delete.tags. adls.sas-token. adls.connection-string.".split()
)
"""Prefixes after which any name is allowed."""


def misspelt(node: Node | None) -> Iterator[Diagnostic]:
    for entry in node.entries if isinstance(node, MapNode) else ():
        if entry.key in _KNOWN or entry.key.startswith(_FREE):
            continue
        near = get_close_matches(entry.key.lower().replace("_", "-"), _KNOWN, n=1, cutoff=0.85)
        if near:
            message = f"'{entry.key}' is not a known catalog property"
            yield error("unknown-key", message, entry.span, help=f"Did you mean '{near[0]}'?")
