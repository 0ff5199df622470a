package cli

// AboutStores explains in help texts how the flags name stores.
const AboutStores = `Object storage, --store s3://BUCKET[/PREFIX][?...], takes these parameters:
  endpoint=URL       a server other than S3 itself
  region=NAME        region of the bucket; us-east-1 works for most other servers
  path-style=BOOL    address the bucket by path; true by default if there is an endpoint
  unquoted=true      begin with ETags without quotes, as Ceph wants them; else detected
Credentials come from where all of AWS's tools find them, such as AWS_ACCESS_KEY_ID and
AWS_SECRET_ACCESS_KEY, AWS_PROFILE, ~/.aws or the machine's role, never from the URL.

Kafka, --store kafka://[USER:PASSWORD@]HOST[:PORT],.../TOPIC[?...], takes these parameters:
  mode=neli          a consumer group nominates a candidate: the owner of partition 0 of its topic
  group=NAME         the group; by default its name is the election's
  group-topic=NAME   topic of the group, any one will do; by default the group's name and .neli
  nominee-only=true  only the nominee ever claims; by default other candidates may claim too, after
                     waiting one lease longer
  without-goneli=true  no process of goNELI joins the group any more, so other candidates may claim
                     without a confirmation by the group
  session=15s        how long a member of the group may be silent
  replicas=N         how many brokers keep a topic that --create makes; by default three
  timeout=2s         how long a broker may take to answer; by default half a lease, 2s at most
The topic is for elections alone. TLS and users come from --kafka-properties, a file of client
properties as Kafka's own tools take it: certificates in PEM, sasl.mechanism PLAIN, SCRAM-SHA-256 or
SCRAM-SHA-512. They may also come from the environment: TENURE_KAFKA_USER, TENURE_KAFKA_PASSWORD,
and for example TENURE_KAFKA_SECURITY_PROTOCOL for security.protocol. The URL overrides the
variables, and they override the file.

Databases, --store postgres://[USER[:PASSWORD]@]HOST[:PORT],.../DATABASE[?...], mysql://... (also
for MariaDB) and sqlite:FILE, take these parameters:
  table=NAME         the table, or SCHEMA.TABLE; by default tenure, which --create makes
  pristine=true      for sqlite: you know that no candidate used an earlier file of this path: so
                     none has to wait for one lease in a new one
  push=off           for postgres: poll, instead of listening to notifications
  listen=HOST:PORT   for postgres: the server's own address, if the URL leads to a pooler
  tls=MODE           for mysql: true, false, skip-verify or preferred, which is the default
  ssl-ca=FILE        for mysql: CA of the server's certificate, in PEM, for tls=true
  ssl-cert=FILE      for mysql: the client's own certificate, with ssl-key=FILE
PostgreSQL also takes the parameters of its own tools, such as sslmode, service and
target_session_attrs, and their variables and files: PGPASSFILE, PGPASSWORD, PGSERVICEFILE. MySQL
takes MYSQL_PWD and the section client of ~/.my.cnf. A file of SQLite is for processes on one
machine.

Object storage, MySQL and MariaDB do not push changes. With --peer each candidate listens, publishes
its address in the record while it leads, and reports renewals and its release to the others. A
candidate dials only addresses in --peer-allow. By default these are the loopback addresses if its
own address is one of them, and otherwise the private ones (10.0.0.0/8, 172.16.0.0/12,
192.168.0.0/16, fc00::/7). A public address needs --peer-allow. Without certificates peers talk
plain HTTP; their reports are signed in any case.`
