int one = 1;
int two = 2;
